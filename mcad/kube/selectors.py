"""Label selectors, as texts of a query and as objects of a spec.

The grammar is that of apimachinery's ``labels.Parse``, and so are the texts of the errors, which
kube-apiserver answers with 400 and kubectl shows.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from mcad.kube import names
from mcad.kube.types import Json

LabelMatch = Callable[[Mapping[str, str]], bool]

_CACHED = 1024
_END = ""
_PIECE = re.compile(r"[ \t\r\n]*(?P<piece>!=|==|[=!(),><]|[^=!(),>< \t\r\n]+)")
_SYMBOLS = frozenset({"!=", "==", "=", "!", "(", ")", ",", ">", "<"})
_OPERATORS = frozenset({"in", "notin", "=", "==", "!=", ">", "<"})
_OPERATORS_TEXT = "in, notin, =, ==, !=, gt, lt"
OF_OBJECT = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = 1 << 63


class Requirement(Struct, frozen=True):
    """What the label of one key has to be; operators as in a text, ``in`` also for ``In``."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value is not None and value in self.values
            case "notin" | "!=":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return value is not None and _compared(value, self.operator, self.values[0])


def everything(_: Mapping[str, str]) -> bool:
    """The selector that is empty."""
    return True


def nothing(_: Mapping[str, str]) -> bool:
    """The selector that is not there."""
    return False


@lru_cache(_CACHED)
def labels(text: str) -> LabelMatch:
    """What ``labelSelector=`` selects; "" selects everything.

    Besides the documented ``=``, ``==``, ``!=``, ``in``, ``notin``, ``key`` and ``!key``,
    kube-apiserver accepts ``key>5`` and ``key<5``, and so does this. Raises ``ValueError``.
    """
    return _all(_Parser(text).requirements())


def label_selector(selector: Json | None) -> LabelMatch:
    """What a LabelSelector object selects: nothing if it is None, everything if it is empty.

    Raises ``ValueError`` for an operator that is not one.
    """
    if selector is None:
        return nothing
    wanted = [
        Requirement(key, "=", (value,))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for one in selector.get("matchExpressions") or ():
        operator = OF_OBJECT.get(one.get("operator"))
        if operator is None:
            name = _shown(str(one.get("operator", "")))
            raise ValueError(f"{name} is not a valid label selector operator")
        wanted.append(_requirement(one.get("key", ""), operator, one.get("values") or ()))
    return _all(wanted)


def _all(wanted: Sequence[Requirement]) -> LabelMatch:
    if not wanted:
        return everything
    if all(one.operator in {"=", "=="} for one in wanted):
        pairs = [(one.key, one.values[0]) for one in wanted]
        return lambda of_object: all(of_object.get(key) == value for key, value in pairs)
    return lambda of_object: all(one.matches(of_object) for one in wanted)


def _compared(value: str, operator: str, bound: str) -> bool:
    left, right = _integer(value), _integer(bound)
    if left is None or right is None:
        return False
    return left > right if operator == ">" else left < right


def _integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def _requirement(key: str, operator: str, values: Iterable[str]) -> Requirement:
    ordered = tuple(values)
    wrong = [_bad_key("key", key, fault) for fault in (names.label_key(key),) if fault]
    if operator in {"in", "notin"} and not ordered:
        detail = "for 'in', 'notin' operators, values set can't be empty"
        wrong.append(_invalid("values", [], detail))
    elif operator in {"exists", "!"} and ordered:
        detail = "values set must be empty for exists and does not exist"
        wrong.append(_invalid("values", list(ordered), detail))
    elif operator in {">", "<"}:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        wrong += [
            _invalid(f"values[{index}]", value, detail)
            for index, value in enumerate(ordered)
            if _integer(value) is None
        ]
    for index, value in enumerate(ordered):
        if fault := names.label_value(value):
            wrong.append(_invalid(f"values[{index}][{key}]", value, "; ".join(fault)))
    if wrong:
        raise ValueError(_aggregate(wrong))
    return Requirement(key, operator, ordered)


def _bad_key(field: str, key: str, faults: Sequence[str]) -> str:
    return _invalid(field, key, "; ".join(faults))


def _invalid(field: str, value: str | list[str], detail: str) -> str:
    """As ``field.Invalid`` prints it."""
    return f"{field}: Invalid value: {_shown(value)}: {detail}"


def _shown(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _aggregate(faults: Sequence[str]) -> str:
    texts = list(dict.fromkeys(faults))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


class _Parser:
    """Recursive descent over the pieces of a label selector."""

    def __init__(self, text: str) -> None:
        self.pieces = [*(found["piece"] for found in _PIECE.finditer(text)), _END]
        self.position = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while (piece := self.pieces[self.position]) != _END:
            if piece != "!" and not _is_word(piece):
                raise ValueError(f"found '{piece}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._one())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            after = self._next()
            if after == _END:
                break
            if after != ",":
                raise ValueError(f"found '{after}', expected: ',' or 'end of string'")
            ahead = self.pieces[self.position]
            if ahead != "!" and not _is_word(ahead):
                raise ValueError(f"found '{ahead}', expected: identifier after ','")
        return found

    def _next(self) -> str:
        piece = self.pieces[self.position]
        self.position = min(self.position + 1, len(self.pieces) - 1)
        return piece

    def _one(self) -> Requirement:
        piece = self._next()
        absent = piece == "!"
        key = self._next() if absent else piece
        if not _is_word(key):
            raise ValueError(f"found '{key}', expected: identifier")
        if fault := names.label_key(key):
            # "<nil>" is what the real one prints for a path that it was not given.
            raise ValueError(_bad_key("<nil>", key, fault))
        if absent:
            return _requirement(key, "!", ())
        if self.pieces[self.position] in {_END, ","}:
            return _requirement(key, "exists", ())
        operator = self._next()
        if operator not in _OPERATORS:
            raise ValueError(f"found '{operator}', expected: {_OPERATORS_TEXT}")
        values = self._values() if operator in {"in", "notin"} else [self._value()]
        return _requirement(key, operator, sorted(set(values)))

    def _value(self) -> str:
        if self.pieces[self.position] in {_END, ","}:
            return ""
        piece = self._next()
        if not _is_word(piece):
            raise ValueError(f"found '{piece}', expected: identifier")
        return piece

    def _values(self) -> list[str]:
        """``(x,y)``; an empty place between commas stands for the empty value."""
        piece = self._next()
        if piece != "(":
            raise ValueError(f"found '{piece}' expected: '('")
        ahead = self.pieces[self.position]
        if ahead not in {",", ")"} and not _is_word(ahead):
            raise ValueError(f"found '{ahead}', expected: ',', ')' or identifier")
        values, word = [], ""
        while True:
            piece = self._next()
            if piece in {",", ")"}:
                values.append(word)
                word = ""
                if piece == ")":
                    return values
            elif word:
                raise ValueError(f"found '{piece}', expected: ',' or ')'")
            elif _is_word(piece):
                word = piece
            else:
                raise ValueError(f"found '{piece}', expected: ',', or identifier")


def _is_word(piece: str) -> bool:
    return piece != _END and piece not in _SYMBOLS
