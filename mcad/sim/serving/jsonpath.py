"""JSONPath as the printer columns of a CRD use it.

The dialect is that of ``k8s.io/client-go/util/jsonpath`` in the part that a column can have: keys
(``.a``, ``.a\\.b``, ``['a b']``), indexes and slices, ``*``, ``..``, unions and filters with one
comparison. ``{range}`` belongs to templates of kubectl and is refused. A key that is missing finds
nothing; what cannot be evaluated (an index that does not exist, a filter on a map) is an error.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

Step = Callable[[list[Any]], list[Any]]
"""From what was found so far to what is found in it; raises JsonPathError."""

_CACHED = 512
_BARE = re.compile(r"(?:\\.|[^ \t\r\n.,\[\]$@{}\\])*")
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_NUMBER = re.compile(r"[+-]?\d[\d.]*")
_WORD = re.compile(r"\w[^ \t\r\n.,\[\]$@{}]*")
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}  # as Go writes JSON
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JsonPathError(ValueError):
    """A path that cannot be parsed, or not be evaluated on this object."""


class JsonPath:
    """One compiled path."""

    def __init__(self, text: str) -> None:
        """Raises JsonPathError for a path with a syntax error."""
        self._steps = tuple(_parse(text))

    def find(self, obj: Any) -> list[Any]:
        """Everything that the path leads to, in order; raises JsonPathError."""
        return _walk([obj], self._steps)


@lru_cache(_CACHED)
def compiled(text: str) -> JsonPath:
    """The same path is parsed once."""
    return JsonPath(text)


def text_of(value: Any) -> str:
    """How client-go prints what was found: maps and lists as JSON, others as Go's ``%v``."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        return text.translate(_ESCAPED)
    if isinstance(value, float):
        return _go_float(value)
    return str(value)


def _go_float(value: float) -> str:
    """Go's ``%v``: the shortest exact digits, with an exponent below 1e-4 and from 1e6 on."""
    exact = Decimal(repr(value)).normalize()
    exponent = exact.adjusted()
    if not value or -4 <= exponent < 6:
        return repr(value).removesuffix(".0")
    sign, digits, _ = exact.as_tuple()
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    return f"{'-' if sign else ''}{first}{fraction}e{exponent:+03d}"


def _walk(found: list[Any], steps: Sequence[Step]) -> list[Any]:
    for step in steps:
        found = step(found)
    return found


def _parse(text: str) -> Iterator[Step]:
    rest = text
    while rest:
        if rest[0] in " @$":
            rest = rest[1:]
        elif rest.startswith("[?("):
            inside, rest = _filter_text(rest)
            yield _filter(inside)
        elif rest[0] == "[":
            inside, found, rest = rest[1:].partition("]")
            if not found:
                raise JsonPathError(f"unterminated array in {text!r}")
            yield _brackets(inside)
        elif rest.startswith(".."):
            yield _descend
            rest = "." + rest[2:] if _WORD.match(rest, 2) else rest[2:]
        elif rest[0] == ".":
            key = _bare(rest)
            rest = rest[1 + len(key) :]
            yield _wildcard if key == "*" else _field(re.sub(r"\\(.)", r"\1", key))
        else:
            value, rest = _literal(rest)
            yield _constant(value)


def _bare(rest: str) -> str:
    match = _BARE.match(rest, 1)
    key = match[0] if match else ""
    if not key:
        raise JsonPathError(f"a key is missing behind the dot of {rest!r}")
    return key


def _literal(rest: str) -> tuple[Any, str]:
    """A number, a text in quotes, true or false: what a filter compares with."""
    if rest[0] in "'\"":
        body, found, behind = rest[1:].partition(rest[0])
        if not found:
            raise JsonPathError(f"unterminated quoted string {rest!r}")
        return body, behind
    if number := _NUMBER.match(rest):
        return _number(number[0]), rest[number.end() :]
    word = _WORD.match(rest)
    if word is None:
        raise JsonPathError(f"unrecognized character in {rest!r}")
    if word[0] not in ("true", "false"):
        raise JsonPathError(f"unrecognized identifier {word[0]}")
    return word[0] == "true", rest[word.end() :]


def _number(text: str) -> int | float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise JsonPathError(f"cannot parse number {text}") from None


def _constant(value: Any) -> Step:
    return lambda found: [value] * len(found)


def _field(name: str) -> Step:
    return lambda found: [
        value[name] for value in found if isinstance(value, dict) and name in value
    ]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _wildcard(found: list[Any]) -> list[Any]:
    return [child for value in found for child in _children(value)]


def _descend(found: list[Any]) -> list[Any]:
    """All maps and lists that are not empty, from the outside in."""
    result = []
    stack = found[::-1]
    while stack:
        value = stack.pop()
        if children := _children(value):
            result.append(value)
            stack += children[::-1]
    return result


def _brackets(inside: str) -> Step:
    parts = inside.split(",")
    if len(parts) > 1:
        steps = [_brackets(part.strip(" ")) for part in parts]
        return lambda found: [one for step in steps for one in step(found)]
    if key := _KEY.fullmatch(inside):
        return _field(key[1].replace("\\", ""))
    return _slice(inside)


def _slice(text: str) -> Step:
    match = _SLICE.fullmatch(":" if text == "*" else text)
    if match is None:
        raise JsonPathError(f"invalid array index {text}")
    start = int(match[1]) if match[1] not in ("", "-") else 0
    single = match[2] is None
    end = int(match[2][1:]) if match[2] and match[2] != ":" else None
    step = int(match[3][1:]) if match[3] and match[3] != ":" else 1
    if step <= 0:
        raise JsonPathError("step must be > 0")

    def cut(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise JsonPathError(f"{text_of(value)} is not array or slice")
        size = len(value)
        first = start + size if start < 0 else start
        last = first + 1 if single else size if end is None else end + size if end < 0 else end
        if first != last and not (0 <= first < size and first <= last <= size):
            raise JsonPathError(f"array index out of bounds: index {first}, length {size}")
        return value[first:last:step]

    return lambda found: [one for value in found if value is not None for one in cut(value)]


def _filter_text(rest: str) -> tuple[str, str]:
    """What stands within ``[?(...)]``, and what comes behind it."""
    quote = ""
    for position, char in enumerate(rest[3:], 3):
        if quote:
            quote = "" if char == quote and rest[position - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char == ")":
            if rest[position + 1 : position + 2] != "]":
                raise JsonPathError("unclosed array expect ]")
            return rest[3:position], rest[position + 2 :]
    raise JsonPathError(f"unterminated filter in {rest!r}")


def _filter(inside: str) -> Step:
    comparison = _COMPARISON.fullmatch(inside)
    if comparison is None:
        there = tuple(_parse(inside))
        return lambda found: [one for one in _elements(found) if _exists(one, there)]
    left, right = tuple(_parse(comparison[1])), tuple(_parse(comparison[3]))
    compare = _COMPARE.get(comparison[2])
    if compare is None:
        raise JsonPathError(f"unrecognized filter operator {comparison[2]}")

    def holds(element: Any) -> bool:
        lefts, rights = _walk([element], left), _walk([element], right)
        if not lefts or not rights:
            return False
        if len(lefts) > 1 or len(rights) > 1:
            raise JsonPathError("can only compare one element at a time")
        return _compared(lefts[0], rights[0], compare)

    return lambda found: [one for one in _elements(found) if holds(one)]


def _elements(found: list[Any]) -> Iterator[Any]:
    for value in found:
        if not isinstance(value, list):
            raise JsonPathError(f"{text_of(value)} is not array or slice and cannot be filtered")
        yield from value


def _exists(element: Any, steps: Sequence[Step]) -> bool:
    try:
        return bool(_walk([element], steps))
    except JsonPathError:
        return False


def _compared(left: Any, right: Any, compare: Callable[[Any, Any], bool]) -> bool:
    """Only values of one basic type can be compared; booleans have no order."""
    ordered = compare not in (operator.eq, operator.ne)
    if type(left) is not type(right) or not isinstance(left, bool | int | float | str):
        raise JsonPathError("incompatible types for comparison")
    if ordered and isinstance(left, bool):
        raise JsonPathError("invalid type for comparison")
    return compare(left, right)
