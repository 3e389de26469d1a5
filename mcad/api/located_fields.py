"""Parts of a manifest together with their field paths."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from mcad.api.wire import Json, Map, as_int, as_list, as_map
from mcad.core.state.model import MAX_PRIORITY

MAX_COUNT = 1_000_000
"""More pods than any cluster can hold: a larger count is a typing error."""


class Fault(NamedTuple):
    """A fault at one place; ``path`` is relative to the manifest."""

    path: str
    message: str


class Part(Struct, frozen=True):
    """One map of a manifest. A malformed count is added to ``faults`` when it is read."""

    value: Map
    path: str
    faults: list[Fault]

    def at(self, key: str) -> "Part":
        """The map under a key, an empty one if there is none."""
        return Part(as_map(self.value.get(key)), join(self.path, key), self.faults)

    def deep(self, path: str) -> "Part":
        """The map at the end of a dotted path; "" is this part."""
        part = self
        for key in path.split(".") if path else ():
            part = part.at(key)
        return part

    def count(self, key: str, default: int) -> int:
        """A number of pods or the like; the default if it is absent or malformed."""
        value = self.value.get(key)
        if value is None:
            return default
        if message := count_fault(value):
            self.faults.append(Fault(join(self.path, key), message))
            return default
        return int(value)

    def most(self, key: str, default: int) -> int:
        """An upper bound of a count. It may be beyond any count: KubeRay writes 2147483647 where no
        ``maxReplicas`` is given, and a Job may have more completions than a cluster has pods."""
        value = as_int(self.value.get(key))
        return value if value > MAX_COUNT else self.count(key, default)

    def elements(self, pattern: str) -> Iterator["Part"]:
        """The maps at a dotted path with a last key that may end in ``[]`` (each element of a list)
        or ``{}`` (each value of a map, in the order of the keys)."""
        head, _, last = pattern.rpartition(".")
        if not last.endswith(("[]", "{}")):
            yield self.deep(pattern)
            return
        owner, key = self.deep(head), last[:-2]
        children: Json = owner.value.get(key)
        if last.endswith("[]"):
            named = ((f"[{i}]", value) for i, value in enumerate(as_list(children)))
        else:
            named = ((f".{name}", value) for name, value in sorted(as_map(children).items()))
        for suffix, value in named:
            yield Part(as_map(value), join(owner.path, key) + suffix, self.faults)

    @property
    def name(self) -> str:
        """The last word of the path."""
        return self.path.rpartition(".")[2]


def join(path: str, key: str) -> str:
    """``spec`` + ``template`` is ``spec.template``; an empty side adds nothing."""
    return f"{path}.{key}" if path and key else path or key


def own_map(owner: Map, key: str) -> Map | None:
    """The map under a key, added if missing; None if the value is not a map."""
    value = owner.get(key)
    if value is None:
        value = owner[key] = {}
    return value if isinstance(value, dict) else None


def count_fault(value: Json) -> str:
    """Why a value is not a valid number of pods, "" if it is one."""
    if not isinstance(value, int) or isinstance(value, bool):
        return f"must be a whole number, not {describe(value)}."
    if value < 0:
        return f"must not be negative, but is {describe(value)}."
    if value > MAX_COUNT:
        return f"is {describe(value)}; at most {MAX_COUNT} is allowed."
    return ""


def clamp_priority(value: int) -> int:
    """A priority within the bounds of a pod's in Kubernetes."""
    return min(max(value, -MAX_PRIORITY), MAX_PRIORITY)


def clamp_count(value: int) -> int:
    """A number of pods within the bounds of a count."""
    return min(max(0, value), MAX_COUNT)


def describe(value: Json) -> str:
    """A value for a message: its type, and the value itself if it is short."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a map"
        case list():
            return "a list"
        case str():
            return f"the string {shorten(value)!r}"
        case int() if abs(value) >= 2**64:
            return "a very large number"
        case _:
            return str(value)


def shorten(text: str, limit: int = 64) -> str:
    """A text that is cut to fit into a message."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
