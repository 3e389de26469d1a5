"""Strategic merge patches, by the rules of apimachinery's ``pkg/util/strategicpatch``."""

from __future__ import annotations

from typing import Any, NoReturn

from mcad.kube.types import Json
from mcad.sim.objects.mergekeys import MERGE, REPLACE, MergeKeys


class PatchError(ValueError):
    """A patch that cannot be applied."""


DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"
_DELETE = "delete"


def strategic(target: Json, patch: Json, keys: MergeKeys) -> Json:
    """A strategic merge patch with the rules of a built-in kind (``merge_keys``).

    Understands ``$patch`` (delete, replace, merge), ``$setElementOrder/...``,
    ``$deleteFromPrimitiveList/...`` and ``$retainKeys``. Custom resources take none of it: answer
    415 for them.
    """
    directive = patch.get(DIRECTIVE)
    if directive == REPLACE:
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == _DELETE:
        return {}
    if DIRECTIVE in patch:
        _fail(f"unknown patch type: {directive}")
    merged, patch = _retained(dict(target), dict(patch))
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _ordered(merged, patch, key, keys)
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            _delete_from(merged, _plain(key, _DELETE_FROM, "primitive list"), value)
        elif value is None:
            merged.pop(key, None)
        else:
            _merge_field(merged, key, value, keys.child(key))
    return merged


def _merge_field(merged: Json, key: str, value: Any, rule: MergeKeys) -> None:
    present = merged.get(key)
    if isinstance(present, dict) and isinstance(value, dict):
        replaced = rule.strategy == REPLACE
        merged[key] = value if replaced else strategic(present, value, rule)
    elif isinstance(present, list) and isinstance(value, list):
        merged[key] = _merge_list(present, value, rule)
    elif isinstance(value, dict) and DIRECTIVE in value:
        merged.pop(key, None)
    else:
        merged[key] = _without_directives(value)


def _retained(target: Json, patch: Json) -> tuple[Json, Json]:
    """Both without what ``$retainKeys`` does not name."""
    if RETAIN_KEYS not in patch:
        return target, patch
    kept = patch.pop(RETAIN_KEYS)
    if not isinstance(kept, list):
        _bad("retainKeys")
    for key, value in patch.items():
        directive = key.startswith((_DELETE_FROM, _ORDER))
        if value is not None and not directive and key not in kept:
            _bad("retainKeys")
    return {key: value for key, value in target.items() if key in kept}, patch


def _delete_from(merged: Json, key: str, values: Any) -> None:
    present = merged.get(key)
    if values is None:
        merged.pop(key, None)
    elif isinstance(present, list) and isinstance(values, list):
        merged[key] = [one for one in present if one not in values]


def _ordered(merged: Json, patch: Json, directive: str, keys: MergeKeys) -> None:
    """Merge the list that one ``$setElementOrder/...`` is about, and put it in that order."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        _bad("setElementOrder list")
    key = _plain(directive, _ORDER, "setElementOrder list")
    rule = keys.child(key)
    for holder in (merged, patch):
        if holder.get(key) is not None and not isinstance(holder[key], list):
            _fail(f"{key} is no list")
    present, given = merged.get(key), patch.get(key)
    if given:
        _check_order(given, order, rule.key)
    if present is None and given is None:
        return
    if given is None:
        result = present or []
    elif present is None:
        result = _without_directives(given)
    else:
        result = _merge_list(present, given, rule)
    merged[key] = _sorted(result, order, present or [], rule.key)
    patch.pop(key, None)


def _check_order(given: list[Any], order: list[Any], key: str) -> None:
    left = [one for one in given if not (key and _directive(one) == _DELETE)]
    place = 0
    while left and place < len(order):
        if key and _directive(left[0]):
            left = left[1:]
            continue
        if _id(left[0], key) == _id(order[place], key):
            left = left[1:]
        place += 1
    if left and order:
        _fail(f"the order in the patch's list does not match its {_ORDER}")


def _directive(item: Any) -> Any:
    return item.get(DIRECTIVE) if isinstance(item, dict) else None


def _merge_list(present: list[Any], given: list[Any], rule: MergeKeys) -> list[Any]:
    if not rule.strategy.startswith(MERGE):
        return given
    if not present and not given:
        return present
    maps = [isinstance(one, dict) for one in (*present, *given)]
    if any(maps) and not all(maps):
        _fail("list element types are not identical")
    if not all(maps):
        both = [*present, *(one for one in given if one not in present)]
        return _sorted(both, given, present, "")
    plain = [one for one in given if DIRECTIVE not in one]
    special = [one for one in given if DIRECTIVE in one]
    kept = _apply_directives(present, special, rule.key)
    for one in plain:
        _id(one, rule.key)
    if any(one[DIRECTIVE] == REPLACE for one in special):
        return [_decoded(one) for one in plain]
    merged = list(kept)
    for item in plain:
        wanted = _id(item, rule.key)
        for index, one in enumerate(merged):
            if one.get(rule.key) == wanted:
                merged[index] = strategic(one, item, rule)
                break
        else:
            merged.append(_decoded(item))
    return _sorted(merged, plain, kept, rule.key)


def _apply_directives(present: list[Any], special: list[Json], key: str) -> list[Any]:
    for one in special:
        match one[DIRECTIVE]:
            case "delete":
                wanted = _id(one, key)
                present = [item for item in present if item.get(key) != wanted]
            case "replace":
                pass
            case "merge":
                _fail("merging lists cannot yet be specified in the patch")
            case other:
                _fail(f"unknown patch type: {other}")
    return present


def _sorted(items: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """Items of ``order`` in its order; each of the others before the first that it preceded."""
    wanted = [_id(one, key) for one in order]
    before = [_id(one, key) for one in live]
    ours = sorted(
        (one for one in items if _id(one, key) in wanted),
        key=lambda one: wanted.index(_id(one, key)),
    )
    others = [one for one in items if _id(one, key) not in wanted]
    result: list[Any] = []
    for one in ours:
        mark = _id(one, key)
        while others and mark in before and before.index(_id(others[0], key)) < before.index(mark):
            result.append(others.pop(0))
        result.append(one)
    return result + others


def _id(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict):
        _fail(f"a map with the key {key} is expected, not {item!r}")
    if key not in item:
        _fail(f"an item does not contain the merge key {key}")
    return item[key]


def _without_directives(value: Any) -> Any:
    """What is new is taken as it is, but for nulls and directives inside."""
    if isinstance(value, dict):
        return {
            key: _without_directives(one)
            for key, one in value.items()
            if one is not None
            and not key.startswith((_ORDER, _DELETE_FROM, RETAIN_KEYS))
            and not (isinstance(one, dict) and DIRECTIVE in one)
        }
    if isinstance(value, list):
        return [
            _without_directives(one)
            for one in value
            if not (isinstance(one, dict) and DIRECTIVE in one)
        ]
    return value


def _decoded(value: Any) -> Any:
    """A new item of a list, without nulls and directives (but with what has a directive)."""
    if isinstance(value, dict):
        return {
            key: _decoded(one)
            for key, one in value.items()
            if one is not None and not key.startswith("$")
        }
    return [_decoded(one) for one in value] if isinstance(value, list) else value


def _plain(directive: str, prefix: str, what: str) -> str:
    head, slash, key = directive.partition("/")
    if not slash or head != prefix:
        _bad(what)
    return key


def _bad(what: str) -> NoReturn:
    raise PatchError(f"invalid patch format of {what}")


def _fail(message: str) -> NoReturn:
    raise PatchError(message)
