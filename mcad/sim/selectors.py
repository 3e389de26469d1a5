"""Selectors of an API server besides those of labels: by fields, and of nodes by a pod's terms.

The grammar is that of apimachinery's ``fields.ParseSelector``, and so are the texts of the errors,
which kube-apiserver answers with 400.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from mcad.kube.selectors import OF_OBJECT, Requirement, everything
from mcad.kube.types import Json

FieldMatch = Callable[[Json], bool]


class UnsupportedFieldError(ValueError):
    """A field selector names a field that this kind cannot be selected by."""

    def __init__(self, field: str) -> None:
        super().__init__(f"field label not supported: {field}")
        self.field = field


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
    operator = {**OF_OBJECT, "Gt": ">", "Lt": "<"}.get(one.get("operator", ""), "")
    values = tuple(one.get("values") or ())
    if not operator or (operator in {">", "<"} and len(values) != 1):
        return False
    return Requirement(one.get("key", ""), operator, values).matches(of_node)


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
