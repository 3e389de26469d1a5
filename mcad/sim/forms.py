"""The forms in which a server gives its objects: whole, metadata only, or as a Table.

The form follows from the Accept header (Kubernetes docs, "Receiving resources as Tables" and
"metadata only"); JSON is the only encoding that is spoken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcad.sim import failures
from mcad.sim.kinds import Kind
from mcad.sim.tables import table
from mcad.sim.versions import from_stored

Json = dict[str, Any]
Name = Literal["Whole", "Metadata", "Table"]

_ACCEPTED = ("application/json",)
_AS: dict[str, Name] = {
    "Table": "Table",
    "PartialObjectMetadata": "Metadata",
    "PartialObjectMetadataList": "Metadata",
}
META = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Form:
    """How to answer. ``include`` is what rows of a Table carry; part of the encoding's key."""

    name: Name = "Whole"
    include: str = "Metadata"


def negotiate(accept: str, include: str) -> Form:
    """The first form that is understood; raises Failure 406 if there is none."""
    for choice in accept.split(",") if accept else ["*/*"]:
        media, *parameters = (part.strip() for part in choice.split(";"))
        if media not in {"application/json", "*/*", "application/*"}:
            continue
        wanted = dict(pair.partition("=")[::2] for pair in parameters)
        if "as" not in wanted:
            return Form()
        name = _AS.get(wanted["as"])
        if name and wanted.get("g") == "meta.k8s.io" and wanted.get("v") == "v1":
            return Form(name, include or "Metadata")
    raise failures.not_acceptable(_ACCEPTED)


def one(kind: Kind, obj: Json, form: Form, now_us: int, *, with_columns: bool = True) -> Json:
    """One stored object."""
    shown = from_stored(kind, obj)
    match form.name:
        case "Whole":
            return shown
        case "Metadata":
            return {
                "kind": "PartialObjectMetadata",
                "apiVersion": META,
                "metadata": obj["metadata"],
            }
        case _:
            return table(
                kind, [shown], now_us=now_us, include=form.include, with_columns=with_columns
            )


def many(kind: Kind, objects: Sequence[Json], metadata: Json, form: Form, now_us: int) -> Json:
    """A list of stored objects."""
    shown = [from_stored(kind, obj) for obj in objects]
    match form.name:
        case "Whole":
            return {
                "kind": f"{kind.kind}List",
                "apiVersion": kind.api_version,
                "metadata": {"continue": "", **metadata} if kind.is_custom else metadata,
                "items": shown if kind.is_custom else [_untyped(obj) for obj in shown],
            }
        case "Metadata":
            items = [
                {"kind": "PartialObjectMetadata", "apiVersion": META, "metadata": obj["metadata"]}
                for obj in shown
            ]
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": META,
                "metadata": metadata,
                "items": items,
            }
        case _:
            return table(kind, shown, now_us=now_us, include=form.include, list_metadata=metadata)


def _untyped(obj: Json) -> Json:
    """An item of a list of a built-in kind: its type is that of the list."""
    return {key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}
