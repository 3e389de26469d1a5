"""The forms in which a server gives its objects: whole, metadata only, or as a Table.

The form follows from the Accept header (Kubernetes docs, "Receiving resources as Tables" and
"metadata only"); JSON is the only encoding that is spoken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.kinds import Kind
from mcad.sim.serving.tables import table
from mcad.sim.versions import from_stored

Name = Literal["Whole", "Metadata", "Table"]
Answer = Literal["one", "list", "watch"]

_SPOKEN = tuple(f"application/{name}" for name in ("json", "yaml", "vnd.kubernetes.protobuf"))
_STREAMED = tuple(f"{one};stream=watch" for one in (_SPOKEN[0], _SPOKEN[2]))
"""What a real server names; this one speaks JSON only."""
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


def negotiate(accept: str, include: str, kind: Kind, answer: Answer) -> Form:
    """The first form that is understood; raises Failure 400 or 406 if there is none."""
    understood = False
    for choice in accept.split(",") if accept else ["*/*"]:
        media, *parameters = (part.strip() for part in choice.split(";"))
        if media not in {"application/json", "*/*"}:
            continue
        understood = True
        wanted = dict(pair.partition("=")[::2] for pair in parameters)
        if "as" not in wanted:
            return Form()
        name = _AS.get(wanted["as"])
        if name and wanted.get("g") == "meta.k8s.io" and wanted.get("v") == "v1":
            _check(wanted["as"], include, kind, answer)
            return Form(name, include or "Metadata")
    if understood:
        raise failures.unsupported_form(_SPOKEN)
    raise failures.not_acceptable(_SPOKEN if answer == "one" else (*_SPOKEN, *_STREAMED))


def _check(wanted: str, include: str, kind: Kind, answer: Answer) -> None:
    if wanted == "Table" and include not in {"", "Metadata", "Object", "None"}:
        raise failures.bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}":'
            " must be 'Metadata', 'Object', 'None', or empty"
        )
    go_type = f"*{kind.group.partition('.')[0] or 'core'}.{kind.kind}"
    if kind.is_custom:
        go_type = "*unstructured.Unstructured"
    if wanted == "PartialObjectMetadata" and answer == "list":
        what = f"is a list ({go_type}List)"
    elif wanted == "PartialObjectMetadataList" and answer == "one":
        what = f"is not a list ({go_type})"
    else:
        return
    text = f"you requested {wanted}, but the requested object {what}"
    raise failures.Failure(406, "NotAcceptable", text)


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
