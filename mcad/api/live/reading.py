"""What a reader gets of a live object, and what it makes of it. No malformed object raises."""

from collections.abc import Mapping

from msgspec import Struct

from mcad.api.kinds import KINDS
from mcad.api.located_fields import Part, clamp_count, join, shorten
from mcad.api.podsets import family_parts
from mcad.api.templates import set_path
from mcad.api.wire import Json, Map, as_list, as_map, as_text, parse_instant
from mcad.core.state.model import ItemState, Wanted
from mcad.core.state.units import Instant

_WORDS_MAX = 256


class LiveSet(Struct, frozen=True):
    """A pod set of a live object: its path, the part of the object that it is read from, and the
    pods that the spec asks for at the moment."""

    path: str
    part: Part
    pods: int


class LiveObject(Struct, frozen=True):
    """A wrapped object as stored. A count that is malformed counts as absent."""

    value: Map
    sets: tuple[LiveSet, ...]

    @property
    def spec(self) -> Part:
        """Its spec."""
        return Part(self.value, "", []).at("spec")

    @property
    def status(self) -> Part:
        """Its status, which is empty until a controller has written it."""
        return Part(self.value, "", []).at("status")

    def condition(self, kind: str, status: str = "True") -> Map:
        """Its condition of this type, an empty map if there is none with this status."""
        return condition(self.status.value, kind, status)

    def now(self) -> dict[str, Wanted]:
        """All pods that the spec asks for, at once."""
        return {one.path: wanted(one.pods) for one in self.sets}

    def later(self) -> dict[str, Wanted]:
        """All of them, but none at the moment."""
        return {one.path: wanted(0, one.pods) for one in self.sets}

    def none(self) -> dict[str, Wanted]:
        """No pods."""
        return {one.path: wanted(0) for one in self.sets}


class Reading(Struct, frozen=True):
    """What a live object says: pods by the path of their set, and its state as a whole.

    ``words`` are those of its controller, of pods that it cannot make or of its failure, and
    ``states`` the fields of its status that tell a state beside its conditions. ``suspended`` are
    the fields that suspend a part of it. A set that it does not tell about is left out.
    """

    wants: Mapping[str, Wanted]
    state: ItemState = ItemState.PROGRESSING
    words: str = ""
    ended: Instant = 0
    states: tuple[str, ...] = ()
    suspended: tuple[tuple[str, ...], ...] = ()


def live_object(value: Map, group: str, kind: str) -> LiveObject:
    """The object with the pod sets that it has in the table of kinds."""
    row, root = KINDS.get((group, kind)), Part(value, "", [])
    sets = tuple(
        LiveSet(set_path(join(part.path, family.template)), part, family.pods(part))
        for family in (row.families if row else ())
        if not family.per_node
        for part in family_parts(family, root)
    )
    return LiveObject(value, sets)


def wanted(now: int, later: int = 0) -> Wanted:
    """These pods, within the bounds of a count."""
    return Wanted(clamp_count(now), clamp_count(later))


def condition(status: Map, kind: str, is_status: str = "True") -> Map:
    """The condition of a type in a status, an empty map if there is none with this status."""
    for one in as_list(status.get("conditions")):
        if isinstance(one, dict) and one.get("type") == kind and one.get("status") == is_status:
            return one
    return {}


def message_of(told: Json) -> str:
    """The message of a condition or the like in one line, or its reason if it has none."""
    told = as_map(told)
    words = as_text(told.get("message")) or as_text(told.get("reason"))
    return brief(words)


def brief(words: str) -> str:
    """Words of a controller in one short line."""
    return shorten(" ".join(words[: 8 * _WORDS_MAX].split()), _WORDS_MAX)


def end_of(obj: LiveObject, ends: Mapping[str, ItemState]) -> Reading | None:
    """The reading of an object that has ended by one of these conditions, None if it has not."""
    for kind, state in ends.items():
        said = obj.condition(kind)
        if said:
            words = message_of(said) if state is ItemState.FAILED else ""
            return Reading(obj.none(), state, words, _end_time(obj.status.value, said))
    return None


def _end_time(status: Map, said: Map) -> Instant:
    """``completionTime``, or when the condition became True."""
    at = parse_instant(status.get("completionTime"))
    return max(0, at or parse_instant(said.get("lastTransitionTime")))
