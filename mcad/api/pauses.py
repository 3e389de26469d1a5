"""The DispatchPause in the API, its source for the CRD, and its reading for the core."""

from typing import Annotated

from pydantic import Field

from mcad.api.models import Wire
from mcad.api.wire import Map, as_map, as_text
from mcad.core.state.dispatch_pause import DispatchPause


class QuotaNodeRef(Wire):
    """A node of a quota tree."""

    tree: str = Field(min_length=1, description="The name of the quota tree.")
    node: str = Field(min_length=1, description="The name of the node.")


class DispatchPauseSpec(Wire):
    """Nothing new is dispatched in the scope while the object exists; what runs is left alone.

    The scope is a namespace or a quota node; without either, the whole cluster.
    """

    namespace: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="AppWrappers of this namespace are not dispatched."
    )
    quota_node: QuotaNodeRef | None = Field(
        default=None,
        alias="quotaNode",
        description="AppWrappers that are charged at this node or below it are not dispatched.",
    )
    reason: str | None = Field(default=None, description="Why, for users: free text.")


def read_pause(obj: Map) -> DispatchPause:
    """Read a DispatchPause. One with a broken scope concerns the whole cluster: it was meant to
    stop something."""
    meta, spec = as_map(obj.get("metadata")), as_map(obj.get("spec"))
    at = as_map(spec.get("quotaNode"))
    tree, node = as_text(at.get("tree")), as_text(at.get("node"))
    return DispatchPause(
        as_text(meta.get("uid")),
        as_text(meta.get("name")),
        as_text(spec.get("namespace")),
        tree if node else "",
        node if tree else "",
        " ".join(as_text(spec.get("reason")).split()),
    )
