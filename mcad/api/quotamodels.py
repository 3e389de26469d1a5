"""The QuotaSubtree in the API: MCAD's spec (facts: MCAD, section 5.1), and the status.

Like those of the AppWrapper (models.py), these models are the source of the CRD's schema. No field
of the spec is required: faults of a tree depend on its other objects, so they are reported in
conditions.
"""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from mcad.api.models import (
    ACCEPTED,
    OBSERVED_GENERATION,
    Int,
    Long,
    Quantities,
    StandardCondition,
    Wire,
)

Amounts = dict[str, Annotated[str, WithJsonSchema({"type": "string"})]]
"""Canonical quantities, by resource."""


class Quotas(Wire):
    """The quota of one node."""

    requests: Quantities | None = Field(
        default=None, description="The quota per resource; 0 for resources that are not listed."
    )
    hard_limit: bool | None = Field(
        default=None,
        alias="hardLimit",
        description="If true, the node and the nodes below it cannot borrow beyond its quota.",
    )
    disabled: bool | None = Field(default=None, description=ACCEPTED)


class QuotaChildSpec(Wire):
    """One node of the tree."""

    name: str | None = Field(
        default=None,
        description="The name of the node, unique in the tree; AppWrappers refer to leaves by it.",
    )
    quotas: Quotas | None = None
    namespace: str | None = Field(default=None, description=ACCEPTED)
    path: str | None = Field(default=None, description=ACCEPTED)
    share: Int | None = Field(default=None, description=ACCEPTED)


class QuotaSubtreeSpec(Wire):
    """Nodes of a quota tree that have the same parent. The label tree names the tree."""

    parent: str | None = Field(
        default=None, description="The parent of the children; empty for the root."
    )
    parent_namespace: str | None = Field(
        default=None, alias="parentNamespace", description=ACCEPTED
    )
    children: list[QuotaChildSpec] | None = Field(
        default=None, description="The nodes, each with its quota."
    )


class QuotaChildStatus(Wire):
    """The quota of one node and its use."""

    name: str = Field(description="The name of the node.")
    nominal: Amounts | None = Field(default=None, description="The quota of the node.")
    allocated: Amounts | None = Field(
        default=None, description="Resources in use by AppWrappers of the node and below it."
    )
    leaving: Amounts | None = Field(
        default=None, description="The part of allocated that is being torn down."
    )
    reserved: Amounts | None = Field(
        default=None,
        description="Resources reserved for AppWrappers that wait until others have left; not part"
        " of allocated.",
    )
    borrowed: Amounts | None = Field(
        default=None, description="The part of allocated that exceeds the node's own quota."
    )
    lent: Amounts | None = Field(
        default=None, description="The part of the node's quota that its siblings use."
    )
    waiting: Amounts | None = Field(
        default=None, description="Resources requested by queued AppWrappers below the node."
    )


class QuotaSubtreeStatus(Wire):
    """The status of the nodes, written by the dispatcher."""

    observed_generation: Long | None = Field(
        default=None, alias="observedGeneration", description=OBSERVED_GENERATION
    )
    conditions: list[StandardCondition] | None = Field(
        default=None, description="Whether all nodes are in force."
    )
    children: list[QuotaChildStatus] | None = Field(
        default=None, description="The quota and use of each node."
    )
