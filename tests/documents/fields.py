"""docs/reference/appwrapper.md: the fields of the three kinds, from the schemas of their CRDs.

``kubectl explain`` shows the same descriptions, of the fields with a type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.api.crd import crds, structural
from mcad.api.models import AppWrapperStatus
from tests.documents.pages import DOCS, code, table

PAGE = DOCS / "reference" / "appwrapper.md"
Json = dict[str, Any]

OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
LIST, MAP = "[]", "{}"


def generated() -> str:
    """The generated part of the page, with the fields of the status that have no type there."""
    appwrappers, *others = crds()
    for version in appwrappers["spec"]["versions"]:
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        properties["status"] = structural(AppWrapperStatus)
    return "\n".join(line for crd in (appwrappers, *others) for line in Kind(crd).lines())


class Kind:
    """One CRD as text: a table for each level of its fields."""

    def __init__(self, crd: Json) -> None:
        self._spec = crd["spec"]
        self._name: str = self._spec["names"]["kind"]
        self._planned: dict[str, Json] = {}

    def lines(self) -> Iterator[str]:
        """The section of the kind."""
        versions = [one["name"] for one in self._spec["versions"]]
        newest = self._spec["versions"][-1]  # all versions have the same schema
        schema = newest["schema"]["openAPIV3Schema"]
        yield from (f"## {self._name}", "", schema["description"], "")
        yield from self._facts(versions)
        for name, part in schema["properties"].items():
            if name not in OF_EVERY_OBJECT:
                self._plan(name, part)
        for path, part in self._planned.items():
            yield from self._level(path, part)
        yield from self._columns(newest["additionalPrinterColumns"])

    def _facts(self, versions: list[str]) -> Iterator[str]:
        names = self._spec["names"]
        words = [names["plural"], names["singular"], *names.get("shortNames", ())]
        served = " and ".join(code(f"{self._spec['group']}/{one}") for one in versions)
        for_kubectl = ", ".join(map(code, words))
        scope = "in a namespace" if self._spec["scope"] == "Namespaced" else "of the whole cluster"
        yield f"API version {served}; an object {scope}."
        yield from (f"Names for kubectl: {for_kubectl}.", "")

    def _level(self, path: str, schema: Json) -> Iterator[str]:
        """The fields of one object."""
        yield from (f"### {self._name} {path}", "", schema.get("description", ""), "")
        required = schema.get("required", ())
        fields = schema.get("properties", {})
        rows = [
            (code(name), self._type(one), _text(one, required=name in required))
            for name, one in fields.items()
        ]
        yield from (*table(("field", "type", "description"), rows), "")
        yield from self._rules(schema)

    def _plan(self, path: str, schema: Json) -> None:
        """An object gets a table once, and after it the objects in it."""
        if "properties" not in schema or schema in self._planned.values():
            return
        self._planned[path] = schema
        for name, one in schema["properties"].items():
            suffix, inner = _inner(one)
            self._plan(f"{path}.{name}{suffix}", inner)

    def _type(self, schema: Json) -> str:
        suffix, inner = _inner(schema)
        word = _word(inner)
        if "properties" in inner:
            path = next(path for path, other in self._planned.items() if other == inner)
            word = f"[{word}](#{_anchor(f'{self._name} {path}')})"
        return {"": "", LIST: "list of ", MAP: "map to "}[suffix] + word

    def _rules(self, schema: Json) -> Iterator[str]:
        rules = [one["message"] for one in schema.get("x-kubernetes-validations", ())]
        if rules:
            yield from ("The API server checks these rules:", "")
            yield from (f"- {one}" for one in rules)
            yield ""

    def _columns(self, columns: list[Json]) -> Iterator[str]:
        yield from (f"### Columns of kubectl get {self._spec['names']['plural']}", "")
        rows = (
            (
                one["name"],
                code(one["jsonPath"]),
                "with `-o wide`" if one.get("priority") else "always",
            )
            for one in columns
        )
        yield from (*table(("column", "field", "shown"), rows), "")


def _inner(schema: Json) -> tuple[str, Json]:
    """The schema of the members of a list or a map, or the schema itself."""
    if schema.get("type") == "array":
        return LIST, schema["items"]
    if isinstance(schema.get("additionalProperties"), dict):
        return MAP, schema["additionalProperties"]
    return "", schema


def _word(schema: Json) -> str:
    if schema.get("x-kubernetes-embedded-resource"):
        return "any Kubernetes object"
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    if schema.get("format") == "date-time":
        return "time"
    return str(schema.get("type", "any value"))


def _text(schema: Json, *, required: bool) -> str:
    parts = [schema.get("description", "")]
    if required:
        parts.insert(0, "**Required.**")
    if "default" in schema:
        parts.append(f"Default: `{schema['default']}`.")
    if "enum" in schema:
        parts.append(f"One of {', '.join(map(code, schema['enum']))}.")
    if "maxItems" in schema:
        parts.append(f"At most {schema['maxItems']}.")
    return " ".join(parts)


def _anchor(heading: str) -> str:
    kept = (one for one in heading.lower() if one.isalnum() or one in "-_ ")
    return "".join(kept).replace(" ", "-")
