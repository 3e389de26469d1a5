"""Finds the pod templates of any object, and follows paths to them.

The walk visits keys in sorted order, so that the result does not depend on the order of keys.
"""

import re

from msgspec import Struct

from mcad.api.located_fields import join
from mcad.api.wire import Json, Map, as_list

MAX_TEMPLATES = 256
MAX_DEPTH = 32
"""Bounds of the walk; real manifests stay far below both."""

_NESTING = (dict, list)

ROOT = "template"
"""How the path of a pod set calls the wrapped object itself (v1beta2's grammar, for both)."""

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]", re.ASCII)


class Spot(Struct, frozen=True):
    """A pod template, its path, and the map that holds it (None if a list holds it)."""

    path: str
    template: Map
    owner: Map | None


def set_path(path: str) -> str:
    """The path of a pod set: ``template.spec.template``, or ``template`` for a bare pod."""
    return join(ROOT, path) if path else ROOT


def find_templates(obj: Map) -> list[Spot]:
    """Every map of the object with ``spec.containers``, outermost only."""
    found: list[Spot] = []
    _walk(obj, "", None, 0, found)
    return found


def _walk(value: Json, path: str, owner: Map | None, depth: int, found: list[Spot]) -> None:
    if depth > MAX_DEPTH or len(found) >= MAX_TEMPLATES:
        return
    if isinstance(value, list):
        for i, element in enumerate(value):
            if isinstance(element, _NESTING):
                _walk(element, f"{path}[{i}]", None, depth + 1, found)
    elif is_template(value):
        found.append(Spot(path, value, owner))
    else:
        nesting = [key for key, inner in value.items() if isinstance(inner, _NESTING)]
        for key in sorted(nesting, key=str):
            if depth or key != "status":
                _walk(value[key], join(path, key), value, depth + 1, found)


def is_template(value: Map) -> bool:
    """Whether a map looks like a pod or a pod template."""
    spec = value.get("spec")
    return isinstance(spec, dict) and isinstance(spec.get("containers"), list)


class PathError(ValueError):
    """A path without a pod template; the message says where it fails."""


def follow(path: str, obj: Map) -> Map:
    """The pod template at a path like ``template.spec.workers[0].template``, or PathError."""
    if not path.startswith(ROOT):
        raise PathError(f"must start with {ROOT!r}.")
    value: Json = obj
    position = len(ROOT)
    for step in _STEP.finditer(path, position):
        if step.start() != position:
            break
        value = _step(value, step)
        if value is None:
            raise PathError(f"there is nothing at {path[: step.end()]!r} in the template.")
        position = step.end()
    if position < len(path):
        raise PathError(f"expected '.field' or '[number]' after {path[:position]!r}.")
    if not isinstance(value, dict) or not isinstance(value.get("spec"), dict):
        raise PathError("does not lead to a pod template: there is no spec there.")
    return value


def _step(value: Json, step: re.Match[str]) -> Json:
    if step[1] is not None:
        return value.get(step[1]) if isinstance(value, dict) else None
    elements, index = as_list(value), int(step[2])
    return elements[index] if index < len(elements) else None
