"""``-o jsonpath=...`` as kubectl has it, without recursive descent and unions.

A template is text with paths in braces: ``{.items[*].name}``, ``{range .items[*]}...{end}``,
``{"\\n"}``. A path has keys (``.a``, ``['a']``, ``.a\\.b``), indexes, slices, ``[*]`` and filters
such as ``[?(@.state=="Running")]``. What leads nowhere is left out.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

Step = Callable[[Any], Iterator[Any]]
Path = tuple[Step, ...]


class JsonPathError(ValueError):
    """A template that is not understood; the message says which part."""


class _Text(Struct, frozen=True):
    text: str


class _Values(Struct, frozen=True):
    path: Path


class _Range(Struct, frozen=True):
    path: Path
    body: list[_Text | _Values | _Range]


Template = list[_Text | _Values | _Range]

_PIECE = re.compile(r"\{((?:[^{}\"']|\"(?:\\.|[^\"])*\"|'(?:\\.|[^'])*')*)\}")
_KEY = re.compile(r"\.?((?:\\.|[^.\[\]\\*?@$(){}\s])+)")
_QUOTED = re.compile(r"\[\s*(?:'((?:\\.|[^'])*)'|\"((?:\\.|[^\"])*)\")\s*\]")
_UNION = re.compile(r"\[[^\]?]*,")
_SLICE = re.compile(r"\[\s*(-?\d*)\s*(:?)\s*(-?\d*)\s*\]")
_FILTER = re.compile(r"\[\?\(((?:[^\"')]|\"[^\"]*\"|'[^']*')*)\)\]")
_CONDITION = re.compile(r"\s*@([^\s=<>!]*)\s*(?:(==|!=|<=|>=|<|>)\s*(\S.*?))?\s*")
_OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def evaluate(template: Template, root: Any) -> str:
    """The text of a template for an object."""
    return "".join(_text(one, root, root) for one in template)


def find(path: Path, root: Any) -> list[Any]:
    """All values that a path leads to."""
    found = [root]
    for step in path:
        found = [value for one in found for value in step(one)]
    return found


def text_of(value: Any) -> str:
    """A value as kubectl prints it: texts as they are, everything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _text(part: _Text | _Values | _Range, here: Any, root: Any) -> str:
    if isinstance(part, _Text):
        return part.text
    if isinstance(part, _Values):
        return " ".join(map(text_of, find(part.path, here)))
    return "".join(_text(one, value, root) for value in find(part.path, here) for one in part.body)


def parse_template(text: str) -> Template:
    """Read a template; raises ``JsonPathError``. A text without braces is a path."""
    if "{" not in text:
        text = f"{{{text}}}"
    whole: Template = []
    opened: list[Template] = [whole]
    position = 0
    for piece in _PIECE.finditer(text):
        _add_text(opened[-1], text[position : piece.start()])
        position = piece.end()
        inner = piece[1].strip()
        if inner == "end":
            if len(opened) == 1:
                raise JsonPathError("{end} has no {range}")
            opened.pop()
        elif inner.startswith("range ") or inner == "range":
            loop = _Range(parse_path(inner.removeprefix("range").strip()), [])
            opened[-1].append(loop)
            opened.append(loop.body)
        elif inner[:1] in ("'", '"'):
            opened[-1].append(_Text(_literal(inner)))
        else:
            opened[-1].append(_Values(parse_path(inner)))
    _add_text(opened[-1], text[position:])
    if len(opened) > 1:
        raise JsonPathError("{range} has no {end}")
    return whole


def _add_text(parts: Template, text: str) -> None:
    if "{" in text or "}" in text:
        raise JsonPathError(f"{text!r} has a brace without its partner")
    if text:
        parts.append(_Text(text))


def _literal(text: str) -> str:
    try:
        inner = text[1:-1].replace('"', '\\"') if text[0] == "'" else text[1:-1]
        value: str = json.loads(f'"{inner}"')
    except ValueError:
        raise JsonPathError(f"{text} is not a text in quotes") from None
    return value


def parse_path(text: str) -> Path:
    """Read a path such as ``.items[0].name``; raises ``JsonPathError``."""
    rest = text.strip().removeprefix("$").removeprefix("@")
    steps: list[Step] = []
    if rest == ".":
        return ()
    while rest:
        try:
            step, length = _step(rest)
        except JsonPathError as error:
            raise error if rest == text.strip() else JsonPathError(f"in {text}: {error}") from None
        steps.append(step)
        rest = rest[length:]
    return tuple(steps)


def _step(rest: str) -> tuple[Step, int]:
    if rest.startswith(".."):
        raise JsonPathError(f"{rest!r}: recursive descent (..) is not supported; write the path")
    if _UNION.match(rest):
        raise JsonPathError(
            f"{rest!r}: a union of keys or indexes is not supported; write two paths"
        )
    for pattern, made in _STEPS:
        if found := pattern.match(rest):
            return made(found), found.end()
    raise JsonPathError(f"{rest!r} is not a key, an index, a slice, [*] or a filter [?(@.a==1)]")


def _every(_: re.Match[str]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value

    return step


def _key(found: re.Match[str]) -> Step:
    name = re.sub(r"\\(.)", r"\1", next(one for one in found.groups() if one is not None))

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value and value[name] is not None:
            yield value[name]

    return step


def _slice(found: re.Match[str]) -> Step:
    first, colon, last = found.groups()
    if not colon and not first:
        raise JsonPathError(f"{found[0]!r} has no index")

    def step(value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            return
        if colon:
            yield from value[int(first) if first else None : int(last) if last else None]
        elif -len(value) <= int(first) < len(value):
            yield value[int(first)]

    return step


def _filter(found: re.Match[str]) -> Step:
    condition = _CONDITION.fullmatch(found[1])
    if condition is None:
        raise JsonPathError(f'{found[0]!r}: write one comparison, such as [?(@.state=="Running")]')
    path, name, wanted = parse_path(condition[1]), condition[2], _value(condition[3])

    def holds(one: Any) -> bool:
        values: Sequence[Any] = find(path, one)
        if not name:
            return bool(values)
        try:
            return any(_OPERATORS[name](value, wanted) for value in values)
        except TypeError:  # a text and a number have no order
            return False

    return lambda value: filter(holds, value if isinstance(value, list) else ())


def _value(text: str | None) -> Any:
    if text is None:
        return None
    if text[0] in ("'", '"') and text[-1] == text[0] and len(text) > 1:
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        raise JsonPathError(f"{text!r} is not a value: put texts into quotes") from None


_STEPS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (re.compile(r"\[\*\]|\.\*"), _every),
    (_FILTER, _filter),
    (_QUOTED, _key),
    (_SLICE, _slice),
    (_KEY, _key),
)
