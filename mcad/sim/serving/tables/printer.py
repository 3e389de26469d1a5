"""What every printer is made of: columns, and how times, labels and containers are written.

Names, types, formats, priorities and cells are those of kube-apiserver 1.36
(``pkg/printers/internalversion``), compared with a real one by ``tests/sim/test_tables.py``. The
descriptions are our own: kubectl does not show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcad.kube import durations
from mcad.kube.types import Json
from mcad.sim import times

Cells = Callable[[Json, int], list[Any]]
"""The cells of one object at an instant in microseconds since the epoch."""

NONE = "<none>"
UNKNOWN = "<unknown>"

_SECOND_US = 1_000_000

_DESCRIPTIONS = {
    "Name": "metadata.name",
    "Age": "Time since the object was created.",
    "Created At": "metadata.creationTimestamp",
    "Containers": "Names of the containers of the template.",
    "Images": "Images of the containers of the template.",
    "Selector": "Which pods belong to it.",
}


@dataclass(frozen=True, slots=True)
class Printer:
    """How objects of one kind become rows."""

    columns: list[Json]
    cells: Cells
    rows_of_nothing: list[Json] | None = None  # an empty list is null where nothing is special


def printer(columns: str, cells: Cells) -> Printer:
    """Columns as ``"Name, Desired:integer, Images+"``: + marks those of ``-o wide`` only."""
    return Printer([_column(one.strip()) for one in columns.split(",")], cells, [])


def _column(text: str) -> Json:
    name, _, rest = text.partition(":")
    wide = text.endswith("+")
    name = name.removesuffix("+")
    return {
        "name": name,
        "type": rest.removesuffix("+") or "string",
        "format": "name" if name == "Name" else "",
        "description": _DESCRIPTIONS.get(name, ""),
        "priority": int(wide),
    }


def created_at() -> Printer:
    """Kinds that have no printer of their own: name and instant of creation."""
    columns = [_column("Name"), _column("Created At:date")]
    return Printer(columns, lambda obj, _: [name(obj), obj["metadata"].get("creationTimestamp")])


def name(obj: Json) -> str:
    """``metadata.name``."""
    text: str = obj["metadata"].get("name", "")
    return text


def age(obj: Json, now_us: int) -> str:
    """Since the creation."""
    return since(obj["metadata"].get("creationTimestamp"), now_us)


def since(instant: str | None, now_us: int) -> str:
    """The time from an RFC 3339 instant to now."""
    if not instant:
        return UNKNOWN
    return human(now_us - times.parse_us(instant))


def human(duration_us: int) -> str:
    """As kubectl says it, and that the clocks of two machines differ where it is less than 0."""
    seconds = abs(duration_us) // _SECOND_US * (1 if duration_us >= 0 else -1)
    return "<invalid>" if seconds < -1 else durations.human(max(seconds, 0))


def labels(given: Mapping[str, str] | None) -> str:
    """``a=1,b=2``."""
    return ",".join(f"{key}={value}" for key, value in sorted((given or {}).items())) or NONE


def selector(given: Json | None, empty: str = NONE) -> str:
    """A LabelSelector in the grammar of ``kubectl -l``; no selector at all selects nothing."""
    if given is None:
        return empty
    exact, more = given.get("matchLabels") or {}, given.get("matchExpressions") or ()
    parts = [(key, f"{key}={value}") for key, value in exact.items()]
    parts += [(one["key"], _expression(one)) for one in more]
    parts.sort(key=lambda part: part[0])
    return ",".join(text for _, text in parts) or empty


def _expression(one: Json) -> str:
    key, values = one["key"], ",".join(sorted(one.get("values") or ()))
    match one["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case _:
            return f"!{key}"


def containers(pod_spec: Json) -> list[str]:
    """Names and images of the containers, two cells."""
    them: Sequence[Json] = pod_spec.get("containers") or ()
    return [",".join(one["name"] for one in them), ",".join(one.get("image", "") for one in them)]


def template(obj: Json) -> Json:
    """The pod spec of a workload's template."""
    spec: Json = (obj["spec"].get("template") or {}).get("spec") or {}
    return spec


def condition(obj: Json, kind: str) -> Json:
    """A condition of the status; empty if it is not there."""
    conditions: Iterable[Json] = status(obj).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind), {})


def status(obj: Json) -> Json:
    """The status, empty if there is none."""
    found: Json = obj.get("status") or {}
    return found
