"""The rules of CRDs (``x-kubernetes-validations``), evaluated by the CEL library of its makers.

Sources: "CRD validation rules" of the Kubernetes documentation, and for the words of a refusal
``k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel``. The library is chosen in an ADR.

Known differences: no cost budget; a duration is a text, and so is a date-time below the object that
a rule is about; unknown fields are compared in full, where kube-apiserver passes over renamed ones;
of the Kubernetes libraries there is that of strings, and a rule that needs another is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings

from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import duplicate, forbidden, invalid, required, shown
from mcad.sim.objects.schema import Node, compiled

BLOCKED = Cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    "<nil>",
)
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_WORDS = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    )
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPE = re.compile(r"__|[.\-/]")
_QUOTED = re.compile(r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"")
_OLD_SELF = re.compile(r"\boldSelf\b")
_OPTIONAL = "cel.bind(oldSelf, hasOldSelf ? optional.of(oldValue) : optional.none(), {})"
_NO_FIELD = re.compile(r'Key not found in map : "?([^"]*)"?')
_NO_ITEM = re.compile(r"Index error: index=(-?\d+)")
_compile = lru_cache(1024)(cel.Env.compile)  # the same CRD comes again in every cluster of a test

_T = cel.Type


@dataclass(frozen=True, slots=True)
class _Rule:
    raw: Json
    expression: Any
    message: Any
    uses_old: bool
    optional: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """The rules of one node, and the nodes below it that have some."""

    node: Node
    env: Any
    rules: tuple[_Rule, ...]
    fields: dict[str, _Plan]
    additional: _Plan | None
    items: _Plan | None


class Rules:
    """The compiled rules of a schema; ``unsupported`` names those that cannot be evaluated here."""

    def __init__(self, schema: Json | Node) -> None:
        """Compile every rule; one that the library refuses is left out and named."""
        self.unsupported: list[str] = []
        self._plan = self._planned(compiled(schema), "", root=True)

    def check(self, new: Json, old: Json | None = None, found: Sequence[Cause] = ()) -> list[Cause]:
        """What the rules have against an object; ``old`` is what it replaces.

        ``found`` is what values.py has found: rules are not evaluated on an object of wrong types.
        """
        if self._plan is None:
            return []
        if any(cause.reason in _BLOCKING for cause in found):
            return [BLOCKED]
        return list(_evaluate(self._plan, new, old, "", root=True))

    def _planned(self, node: Node, path: str, *, root: bool = False) -> _Plan | None:
        fields = {
            name: plan
            for name, one in node.properties.items()
            if (plan := self._planned(one, f"{path}.{name}")) is not None
            and not (root and name == "metadata")
        }
        additional = self._planned(node.additional, f"{path}[*]") if node.additional else None
        items = self._planned(node.items, f"{path}[]") if node.items else None
        env = _environment(of_time=_is_time(node))
        rules = tuple(self._compiled(node, path, env))
        if not (rules or fields or additional or items):
            return None
        return _Plan(node, env, rules, fields, additional, items)

    def _compiled(self, node: Node, path: str, env: Any) -> Iterator[_Rule]:
        for raw in node.raw.get("x-kubernetes-validations") or ():
            rule: str = raw["rule"]
            optional = bool(raw.get("optionalOldSelf"))
            try:
                expression = _compile(env, _OPTIONAL.format(rule) if optional else rule)
                message = _compile(env, text) if (text := raw.get("messageExpression")) else None
            except RuntimeError as error:
                self.unsupported.append(f"{path.lstrip('.')}: {rule}: {error}")
                continue
            uses_old = _OLD_SELF.search(_QUOTED.sub("", rule)) is not None
            yield _Rule(raw, expression, message, uses_old, optional)


def _evaluate(
    plan: _Plan, value: Any, old: Any, path: str, *, root: bool = False
) -> Iterator[Cause]:
    if value is None:
        return
    if plan.rules:
        yield from _apply(plan, value, old, path, root=root)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key, one in value.items():
            below = plan.fields.get(key)
            if below is not None:
                yield from _evaluate(below, one, before.get(key), f"{path}.{key}" if path else key)
            elif plan.additional is not None and key not in plan.node.properties:
                yield from _evaluate(plan.additional, one, before.get(key), f"{path}[{key}]")
    elif isinstance(value, list) and plan.items is not None:
        mates = _by_key(plan.node, old)
        for index, one in enumerate(value):
            mate = mates.get(_key(plan.node, one)) if mates else None
            yield from _evaluate(plan.items, one, mate, f"{path}[{index}]")


def _apply(plan: _Plan, value: Any, old: Any, path: str, *, root: bool) -> Iterator[Cause]:
    unchanged = old is not None and old == value
    wanted = [
        rule
        for rule in plan.rules
        # Transition rules need something to compare with; what was let in before may stay.
        if (old is not None or rule.optional if rule.uses_old else not unchanged)
    ]
    if not wanted:
        return
    data: Json = {
        "self": to_cel(value, plan.node, root=root, top=True),
        "hasOldSelf": old is not None,
    }
    if old is not None:
        data["oldSelf"] = data["oldValue"] = to_cel(old, plan.node, root=root, top=True)
    activation = plan.env.Activation(data=data)
    for rule in wanted:
        result = rule.expression.eval(activation)
        if result.type() == _T.ERROR:
            detail = f"{_error(result.value())} evaluating rule: {_text(rule.raw)}"
            yield invalid(path or "<nil>", plan.node.type, detail)
        elif result.value() is not True:
            yield _refusal(rule, plan.node, value, path, activation)


def _refusal(rule: _Rule, node: Node, value: Any, path: str, activation: Any) -> Cause:
    detail = _message(rule, activation)
    field = path
    if rule.raw.get("fieldPath"):
        field += re.sub(r"\['([^']*)'\]", r".\1", rule.raw["fieldPath"])
    field = field.lstrip(".") or "<nil>"
    omitted = node.type in {"object", "array"}
    match rule.raw.get("reason"):
        case "FieldValueForbidden":
            return forbidden(field, detail)
        case "FieldValueRequired":
            return required(field, detail)
        case "FieldValueDuplicate":
            return duplicate(field, value)
        case _ if omitted:
            return Cause("FieldValueInvalid", f"Invalid value: {detail}", field)
        case _:
            return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def _message(rule: _Rule, activation: Any) -> str:
    if rule.message is not None:
        result = rule.message.eval(activation)
        text = result.value()
        if result.type() != _T.ERROR and isinstance(text, str) and text.strip():
            return text.strip()
    given: str = rule.raw.get("message", "").strip()
    return given or f"failed rule: {rule.raw['rule'].strip()}"


def _text(raw: Json) -> str:
    text: str = raw.get("message") or raw["rule"]
    return text.strip()


def _error(text: str) -> str:
    """The library's error in the words of cel-go, as far as they are known."""
    field, item = _NO_FIELD.search(text), _NO_ITEM.search(text)
    if field:
        return f"no such key: {field[1]}"
    if item:
        return f"index out of bounds: {item[1]}"
    if "divide by zero" in text:
        return "division by zero"
    return text.partition(": ")[2] or text


# Values -----------------------------------------------------------------------------------------


def to_cel(value: Any, node: Node, *, root: bool = False, top: bool = False) -> Any:
    """A value as rules see it: names escaped, numbers and times of the right type.

    ``top`` is what a rule is about, ``root`` a whole object.
    """
    if isinstance(value, dict):
        if root or node.embedded:
            value = {**value, "metadata": _visible(value.get("metadata"))}
        if not node.properties:
            item = node.additional
            return {key: to_cel(one, item) if item else one for key, one in value.items()}
        return {
            escape(key) if key in node.properties else key: to_cel(one, known)
            if (known := node.child(key)) is not None
            else one
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [to_cel(one, node.items) for one in value] if node.items is not None else value
    if isinstance(value, str) and top and _is_time(node):
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if node.type == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _is_time(node: Node) -> bool:
    return node.type == "string" and node.raw.get("format") == "date-time"


def _visible(metadata: Any) -> Json:
    """Of the metadata, rules see the name only."""
    known = ("name", "generateName")
    return {key: metadata[key] for key in known if key in metadata} if metadata else {}


def escape(name: str) -> str:
    """The name of a field in a rule: ``a-b`` is ``a__dash__b``."""
    return f"__{name}__" if name in _WORDS else _ESCAPE.sub(lambda m: _ESCAPES[m[0]], name)


def _key(node: Node, item: Any) -> str:
    keys = {name: item.get(name) for name in node.map_keys} if isinstance(item, dict) else {}
    return json.dumps(keys, sort_keys=True)


def _by_key(node: Node, old: Any) -> dict[str, Any]:
    """The old items of a list of type map; those of others are never compared."""
    if node.list_type != "map" or not isinstance(old, list):
        return {}
    return {_key(node, item): item for item in old}


# The environment --------------------------------------------------------------------------------


@cache
def _environment(*, of_time: bool) -> Any:
    """What expressions can name; ``of_time`` is whether ``self`` stands for an instant."""
    kind = _T.TIMESTAMP if of_time else _T.DYN
    variables = {"self": kind, "oldSelf": kind, "oldValue": kind, "hasOldSelf": _T.BOOL}
    extensions = [
        ext_optional.ExtOptional(),
        ext_strings.ExtStrings(),
        ext_bindings.ExtBindings(),
        ext_math.ExtMath(),
    ]
    return cel.NewEnv(variables=variables, extensions=extensions)
