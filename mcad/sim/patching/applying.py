"""Server-side apply (KEP-555), without ``managedFields``.

What every manager has applied is remembered beside the object. So a field that a manager applied
and leaves out next time goes away, lists are merged by their keys, and two who apply different
values to one field are in conflict, as on a real server. What is written in other ways (PUT, other
patches) has no owner here, so applying over it is no conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.objects import causes
from mcad.sim.objects.mergekeys import MERGE, UNKNOWN, MergeKeys, merge_keys
from mcad.sim.objects.schema import Node, compiled

Json = dict[str, Any]

_IDENTITY = ("apiVersion", "kind")
_NAMES = (".metadata.name", ".metadata.namespace")  # nobody owns them
_MANAGER_MAX = 128
_ABSENT = object()


class Rule(Protocol):
    """How a list of an object is merged; below unknown fields, not at all."""

    @property
    def keys(self) -> tuple[str, ...] | None:
        """Names of the keys of a list of objects, () for a list of scalars; None: replaced."""
        ...

    def child(self, name: str) -> Rule:
        """The rule of a field."""
        ...

    def item(self) -> Rule:
        """The rule of the objects in a list."""
        ...


@dataclass(frozen=True, slots=True)
class _Builtin:
    known: MergeKeys = UNKNOWN

    @property
    def keys(self) -> tuple[str, ...] | None:
        if MERGE not in self.known.strategy:
            return None
        return (self.known.key,) if self.known.key else ()

    def child(self, name: str) -> Rule:
        return _Builtin(self.known.child(name))

    def item(self) -> Rule:
        return self


@dataclass(frozen=True, slots=True)
class _Custom:
    node: Node | None = None

    @property
    def keys(self) -> tuple[str, ...] | None:
        match self.node.list_type if self.node else "":
            case "map":
                return self.node.map_keys if self.node else ()
            case "set":
                return ()
            case _:
                return None

    def child(self, name: str) -> Rule:
        return _Custom(self.node.child(name) if self.node else None)

    def item(self) -> Rule:
        return _Custom(self.node.items if self.node else None)


def rule_of(kind: Kind) -> Rule:
    """The rules of a kind: of a CRD's schema, or of a built-in type."""
    if kind.is_custom:
        return _Custom(compiled(kind.schema) if kind.schema else None)
    return _Builtin(merge_keys(kind.api_version, kind.kind))


@dataclass(frozen=True, slots=True)
class Intent:
    """Who applies, and whether the fields of others are taken over."""

    manager: str
    force: bool = False


class Applied:
    """What was applied to one object, by manager."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._by_manager: dict[str, Json] = {}

    def apply(self, live: Json, wanted: Json, intent: Intent, rule: Rule) -> Json:
        """The object with what is wanted in it; raises Failure 409. Changes neither."""
        wanted = {key: value for key, value in wanted.items() if key not in _IDENTITY}
        if not intent.force:
            self._check(live, wanted, intent.manager, rule)
        mine = self._by_manager.get(intent.manager, {})
        for other, theirs in self._by_manager.items():
            if other != intent.manager:  # what others want, too, stays when it is left out
                mine = _beyond(mine, theirs, rule)
        return _merged_map(live, wanted, mine, rule)

    def remember(self, wanted: Json, manager: str) -> None:
        """What was applied is this manager's from now on."""
        self._by_manager[manager] = {k: v for k, v in wanted.items() if k not in _IDENTITY}

    def _check(self, live: Json, wanted: Json, manager: str, rule: Rule) -> None:
        clashes = [
            (other, path)
            for other, theirs in sorted(self._by_manager.items())
            if other != manager
            for path in _clashes(wanted, theirs, live, rule, "")
            if path not in _NAMES
        ]
        if clashes:
            raise _conflict(clashes)


def _merged(live: Any, new: Any, old: Any, rule: Rule) -> Any:
    if isinstance(new, dict):
        return _merged_map(
            live if isinstance(live, dict) else {}, new, old if isinstance(old, dict) else {}, rule
        )
    if isinstance(new, list) and isinstance(live, list) and rule.keys is not None:
        return _merged_list(live, new, old if isinstance(old, list) else [], rule)
    return new


def _merged_map(live: Json, new: Json, old: Json, rule: Rule) -> Json:
    result = dict(live)
    for name in old:
        if name not in new and name in live:
            rest = _without(live[name], old[name], rule.child(name))
            if rest is _ABSENT:
                del result[name]
            else:
                result[name] = rest
    for name, value in new.items():
        result[name] = _merged(live.get(name), value, old.get(name), rule.child(name))
    return result


def _merged_list(live: list[Any], new: list[Any], old: list[Any], rule: Rule) -> list[Any]:
    """Those of others stay where they are; new ones come behind, in their order."""
    known = {_key(item, rule): item for item in live}
    wanted = {_key(item, rule): item for item in new}
    before = {_key(item, rule): item for item in old}
    result = []
    for key, item in known.items():
        if key in wanted:
            result.append(_merged(item, wanted[key], before.get(key), rule.item()))
        elif key not in before:
            result.append(item)
    return result + [item for key, item in wanted.items() if key not in known]


def _without(live: Any, old: Any, rule: Rule) -> Any:
    """What is left of a value when what was applied of it is taken away."""
    if isinstance(live, dict) and isinstance(old, dict):
        return _merged_map(live, {}, old, rule) or _ABSENT
    if isinstance(live, list) and isinstance(old, list) and rule.keys is not None:
        return _merged_list(live, [], old, rule) or _ABSENT
    return _ABSENT


def _beyond(mine: Json, theirs: Json, rule: Rule) -> Json:
    """What was applied by one manager and not by the other."""
    result: Json = {}
    for name, value in mine.items():
        if name not in theirs:
            result[name] = value
            continue
        other, below = theirs[name], rule.child(name)
        if isinstance(value, dict) and isinstance(other, dict):
            result[name] = _beyond(value, other, below)
        elif isinstance(value, list) and isinstance(other, list) and below.keys is not None:
            known = {_key(item, below) for item in other}
            result[name] = [item for item in value if _key(item, below) not in known]
    return {name: value for name, value in result.items() if value not in ({}, [])}


def _key(item: Any, rule: Rule) -> Any:
    if rule.keys and isinstance(item, dict):
        return tuple(str(item.get(name, "")) for name in rule.keys)
    return repr(item)


def _clashes(new: Any, theirs: Any, live: Any, rule: Rule, path: str) -> Iterator[str]:
    """Paths that both apply, where the new value would change the live one."""
    if isinstance(new, dict) and isinstance(theirs, dict):
        below = live if isinstance(live, dict) else {}
        for name in new:
            if name in theirs:
                yield from _clashes(
                    new[name], theirs[name], below.get(name), rule.child(name), f"{path}.{name}"
                )
    elif isinstance(new, list) and isinstance(theirs, list) and rule.keys is not None:
        their = {_key(item, rule): item for item in theirs}
        present = {_key(item, rule): item for item in live or ()}
        for item in new:
            key = _key(item, rule)
            if rule.keys and key in their:
                selector = ",".join(
                    f'{name}="{value}"' for name, value in zip(rule.keys, key, strict=True)
                )
                yield from _clashes(
                    item, their[key], present.get(key), rule.item(), f"{path}[{selector}]"
                )
    elif new not in (theirs, live):
        yield path


def _conflict(clashes: list[tuple[str, str]]) -> Failure:
    number = f"{len(clashes)} conflict{'s' if len(clashes) > 1 else ''}"
    listed = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{who}"', "field": path}
        for who, path in clashes
    ]
    if len(clashes) == 1:
        told = f'conflict with "{clashes[0][0]}": {clashes[0][1]}'
    else:
        lines = []
        for manager in sorted({who for who, _ in clashes}):
            lines.append(f'conflicts with "{manager}":')
            lines += [f"- {path}" for who, path in clashes if who == manager]
        told = "\n".join(lines)
    text = f"Apply failed with {number}: {told}"
    return Failure(409, "Conflict", text, {"causes": listed})


def read_intent(kind: Kind, config: Json, params: Mapping[str, str]) -> Intent:
    """Out of a query; raises Failure for what an apply must not have."""
    if (config.get("metadata") or {}).get("managedFields"):
        raise failures.bad_request("metadata.managedFields must be nil")
    manager = params.get("fieldManager", "")
    if not manager:
        fault = causes.required("fieldManager", "is required for apply patch")
        raise failures.invalid_options("PatchOptions", [fault])
    if len(manager) > _MANAGER_MAX:
        fault = causes.too_long("fieldManager", _MANAGER_MAX)
        raise failures.invalid_options("PatchOptions", [fault])
    version, name = config.get("apiVersion") or "", config.get("kind") or ""
    if (version, name) != (kind.api_version, kind.kind):
        group, _, short = version.rpartition("/")
        raise failures.bad_request(f"invalid object type: {group}/{short}, Kind={name}")
    return Intent(manager, params.get("force") in {"true", "1"})
