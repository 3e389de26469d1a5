"""JSON patches (RFC 6902), as leniently as kube-apiserver applies them.

It uses ``evanphx/json-patch`` v4, which counts indices from the end too, lets ``replace`` add a key
that is missing, and copies a value that is missing as null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mcad.kube.types import Json

REJECTED = "the server rejected our request due to an error in our request"
"""All that kube-apiserver says of a JSON patch that does not apply, a failed test included."""

OPERATIONS_MAX = 10_000
_Parts = list[str]


class PatchError(ValueError):
    """A patch that cannot be applied: the answer's code, its reason and its message.

    ``why`` says more than the message does; kube-apiserver keeps it to itself.
    """

    def __init__(self, code: int, reason: str, message: str, why: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.why = why or message


def json_patch(target: Any, operations: Sequence[Any]) -> Any:
    """RFC 6902; raises ``PatchError`` if one of the operations does not apply."""
    if len(operations) > OPERATIONS_MAX:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            "The allowed maximum operations in a JSON patch is "
            f"{OPERATIONS_MAX}, got {len(operations)}",
        )
    for number, operation in enumerate(operations):
        apply = _OPERATIONS.get(operation.get("op")) if isinstance(operation, dict) else None
        if apply is None:
            _reject(f"operation {number} is not one of {', '.join(_OPERATIONS)}")
        target = apply(target, operation)
    return target


def _add(target: Any, operation: Json) -> Any:
    return _added(target, _path(operation), operation.get("value"))


def _added(target: Any, parts: _Parts, value: Any) -> Any:
    def put(parent: Any, key: str) -> Any:
        if isinstance(parent, dict):
            return {**parent, key: value}
        index = len(parent) if key == "-" else _index(key, len(parent) + 1)
        return [*parent[:index], value, *parent[index:]]

    return _edit(target, parts, put)


def _remove(target: Any, operation: Json) -> Any:
    return _removed(target, _path(operation))


def _removed(target: Any, parts: _Parts) -> Any:
    def drop(parent: Any, key: str) -> Any:
        if isinstance(parent, dict):
            if key not in parent:
                _reject(f"there is no {key} to remove")
            return {name: value for name, value in parent.items() if name != key}
        index = _index(key, len(parent))
        return [*parent[:index], *parent[index + 1 :]]

    return _edit(target, parts, drop)


def _replace(target: Any, operation: Json) -> Any:
    parts, value = _path(operation, whole=True), operation.get("value")
    if not parts:
        if not isinstance(value, dict | list):
            _reject("only an object or a list can replace the whole document")
        return value

    def put(parent: Any, key: str) -> Any:
        if isinstance(parent, dict):
            return {**parent, key: value}
        index = _index(key, len(parent))
        return [*parent[:index], value, *parent[index + 1 :]]

    return _edit(target, parts, put)


def _move(target: Any, operation: Json) -> Any:
    origin = _path(operation, "from")
    value = _read(target, origin)
    return _added(_removed(target, origin), _path(operation), value)


def _copy(target: Any, operation: Json) -> Any:
    value = _read(target, _path(operation, "from"))
    return _added(target, _path(operation), value)


def _test(target: Any, operation: Json) -> Any:
    parts = _path(operation, whole=True)
    value = _read(target, parts) if parts else target
    if not _equal(value, operation.get("value")):
        _reject(f"testing value {operation['path']} failed")
    return target


_OPERATIONS: dict[Any, Callable[[Any, Json], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: in Python True equals 1, in JSON it does not."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _path(operation: Json, field: str = "path", *, whole: bool = False) -> _Parts:
    path = operation.get(field)
    if whole and path == "":
        return []
    if not isinstance(path, str) or "/" not in path:
        _reject(f"{field} {path!r} is not a JSON pointer")
    # What stands before the first slash is ignored by kube-apiserver too.
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _read(target: Any, parts: _Parts) -> Any:
    for depth, part in enumerate(parts):
        if isinstance(target, dict):
            if part not in target and depth < len(parts) - 1:
                _reject(f"there is no {part}")
            target = target.get(part)
        elif isinstance(target, list):
            target = target[_index(part, len(target))]
        else:
            _reject(f"{part} is below a value that has no fields")
    return target


def _edit(target: Any, parts: _Parts, change: Callable[[Any, str], Any]) -> Any:
    """``target`` with the innermost container changed, and what leads there copied."""
    if not isinstance(target, dict | list):
        _reject(f"{parts[0]} is below a value that has no fields")
    if len(parts) == 1:
        return change(target, parts[0])
    if isinstance(target, dict):
        if parts[0] not in target:
            _reject(f"there is no {parts[0]}")
        return {**target, parts[0]: _edit(target[parts[0]], parts[1:], change)}
    index = _index(parts[0], len(target))
    return [*target[:index], _edit(target[index], parts[1:], change), *target[index + 1 :]]


def _index(key: str, size: int) -> int:
    digits = key[1:] if key[:1] in {"-", "+"} else key
    if not (digits.isascii() and digits.isdigit()):
        _reject(f"{key} is not an index")
    index = int(key)
    if not -size <= index < size:
        _reject(f"there is no item {key}")
    return index + size if index < 0 else index


def _reject(why: str) -> NoReturn:
    raise PatchError(422, "Invalid", REJECTED, why)
