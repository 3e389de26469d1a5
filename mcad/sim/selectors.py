"""Label selectors and field selectors, as texts of a query and as objects of a spec.

The grammar is that of apimachinery's ``labels.Parse`` and ``fields.ParseSelector``, and so are the
texts of the errors, which kube-apiserver answers with 400.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects import names
from mcad.sim.objects.causes import invalid, quoted

LabelMatch = Callable[[Mapping[str, str]], bool]
FieldMatch = Callable[[Json], bool]

_CACHED = 1024
_END = ""
_PIECE = re.compile(r"[ \t\r\n]*(?P<piece>!=|==|[=!(),><]|[^=!(),>< \t\r\n]+)")
_SYMBOLS = frozenset({"!=", "==", "=", "!", "(", ")", ",", ">", "<"})
_OPERATORS = frozenset({"in", "notin", "=", "==", "!=", ">", "<"})
_OPERATORS_TEXT = "in, notin, =, ==, !=, gt, lt"
_OF_OBJECT = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = 1 << 63


class UnsupportedFieldError(ValueError):
    """A field selector names a field that this kind cannot be selected by."""

    def __init__(self, field: str) -> None:
        super().__init__(f"field label not supported: {field}")
        self.field = field


@dataclass(frozen=True, slots=True)
class _Requirement:
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
        _Requirement(key, "=", (value,))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for one in selector.get("matchExpressions") or ():
        operator = _OF_OBJECT.get(one.get("operator"))
        if operator is None:
            name = quoted(str(one.get("operator", "")))
            raise ValueError(f"{name} is not a valid label selector operator")
        wanted.append(_requirement(one.get("key", ""), operator, one.get("values") or ()))
    return _all(wanted)


def fields(text: str, allowed: Mapping[str, Callable[[Json], str]]) -> FieldMatch:
    """What ``fieldSelector=`` selects, among objects whose ``allowed`` fields can be read.

    Raises ``UnsupportedFieldError`` for another field and ``ValueError`` for anything malformed.
    """
    wanted = [_field_term(text, term) for term in sorted(_split(text)) if term]
    tests = []
    for name, equal, value in wanted:
        if not name and not value:
            continue  # kube-apiserver takes "=" for nothing at all
        if name not in allowed:
            raise UnsupportedFieldError(name)
        tests.append((allowed[name], equal, value))
    if not tests:
        return everything
    return lambda obj: all((read(obj) == value) is equal for read, equal, value in tests)


def node_selector_terms(terms: Iterable[Json], node: Json) -> bool:
    """Whether a node has what one of a pod's ``nodeSelectorTerms`` asks for.

    A term without requirements matches no node. The only field is ``metadata.name``.
    """
    metadata = node.get("metadata") or {}
    own_labels = metadata.get("labels") or {}
    own_fields = {"metadata.name": metadata.get("name", "")}
    return any(_term(term, own_labels, own_fields) for term in terms)


def _term(term: Json, own_labels: Mapping[str, str], own_fields: Mapping[str, str]) -> bool:
    expressions, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not by_field:
        return False
    return all(_node_requirement(one, own_labels) for one in expressions) and all(
        _node_requirement(one, own_fields) for one in by_field
    )


def _node_requirement(one: Json, of_node: Mapping[str, str]) -> bool:
    operator = {**_OF_OBJECT, "Gt": ">", "Lt": "<"}.get(one.get("operator", ""), "")
    values = tuple(one.get("values") or ())
    if not operator or (operator in {">", "<"} and len(values) != 1):
        return False
    return _Requirement(one.get("key", ""), operator, values).matches(of_node)


def _all(wanted: Sequence[_Requirement]) -> LabelMatch:
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


def _requirement(key: str, operator: str, values: Iterable[str]) -> _Requirement:
    ordered = tuple(values)
    wrong = [_bad_key("key", key, fault) for fault in (names.label_key(key),) if fault]
    if operator in {"in", "notin"} and not ordered:
        detail = "for 'in', 'notin' operators, values set can't be empty"
        wrong.append(invalid("values", [], detail))
    elif operator in {"exists", "!"} and ordered:
        detail = "values set must be empty for exists and does not exist"
        wrong.append(invalid("values", list(ordered), detail))
    elif operator in {">", "<"}:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        wrong += [
            invalid(f"values[{index}]", value, detail)
            for index, value in enumerate(ordered)
            if _integer(value) is None
        ]
    for index, value in enumerate(ordered):
        if fault := names.label_value(value):
            wrong.append(invalid(f"values[{index}][{key}]", value, "; ".join(fault)))
    if wrong:
        raise ValueError(_aggregate(wrong))
    return _Requirement(key, operator, ordered)


def _bad_key(field: str, key: str, faults: Sequence[str]) -> Cause:
    return invalid(field, key, "; ".join(faults))


def _aggregate(causes: Sequence[Cause]) -> str:
    texts = list(dict.fromkeys(f"{one.field}: {one.message}" for one in causes))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


class _Parser:
    """Recursive descent over the pieces of a label selector."""

    def __init__(self, text: str) -> None:
        self.pieces = [*(found["piece"] for found in _PIECE.finditer(text)), _END]
        self.position = 0

    def requirements(self) -> list[_Requirement]:
        found: list[_Requirement] = []
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

    def _one(self) -> _Requirement:
        piece = self._next()
        absent = piece == "!"
        key = self._next() if absent else piece
        if not _is_word(key):
            raise ValueError(f"found '{key}', expected: identifier")
        if fault := names.label_key(key):
            # "<nil>" is what the real one prints for a path that it was not given.
            cause = _bad_key("<nil>", key, fault)
            raise ValueError(_aggregate([cause]))
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


def _split(text: str) -> list[str]:
    """The terms between the commas; a comma after a backslash belongs to a value."""
    return re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)


def _field_term(text: str, term: str) -> tuple[str, bool, str]:
    found = re.search("!=|==|=", term)
    if found is None:
        raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
    value = _unescaped(term[found.end() :])
    return term[: found.start()], found.group() != "!=", value


def _unescaped(value: str) -> str:
    parts: list[str] = []
    escaped = False
    for char in value:
        if escaped and char not in "\\,=":
            raise ValueError(f"invalid field selector: invalid escape sequence: \\{char}")
        if not escaped and char == "\\":
            escaped = True
            continue
        if not escaped and char in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(char)}")
        parts.append(char)
        escaped = False
    if escaped:
        raise ValueError("invalid field selector: invalid escape sequence: \\")
    return "".join(parts)
