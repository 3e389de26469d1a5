"""What a CustomResourceDefinition must be to be accepted: the common faults.

The whole of ``ValidateCustomResourceDefinition`` is larger; whether a schema is structural, for
one, is left to a real server.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects import causes

_SCOPES = ("Cluster", "Namespaced")


def faults(crd: Json) -> list[Cause]:
    """What is wrong with a definition, in the words of kube-apiserver."""
    spec = crd.get("spec") or {}
    return [*_of_names(crd, spec), *_of_scope(spec), *_of_versions(spec)]


def change_faults(new: Json, old: Json) -> list[Cause]:
    """What is wrong with a change of one that is established."""
    spec, before = new.get("spec") or {}, old["spec"]
    changed = [name for name in ("group", "scope") if spec.get(name) != before.get(name)]
    found = [
        causes.invalid(f"spec.{name}", spec.get(name) or "", "field is immutable")
        for name in changed
    ]
    names, known = spec.get("names") or {}, before["names"]
    for name in ("kind", "plural"):
        if names.get(name) != known.get(name):
            detail = "field is immutable"
            found.append(causes.invalid(f"spec.names.{name}", names.get(name) or "", detail))
    return [*found, *_of_versions(spec)]


def _of_names(crd: Json, spec: Json) -> Iterator[Cause]:
    names, name = spec.get("names") or {}, crd["metadata"].get("name") or ""
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not spec.get("group"):
        yield causes.required("spec.group")
    for part in ("plural", "kind"):
        if not names.get(part):
            yield causes.required(f"spec.names.{part}")
    if not names.get("kind"):  # they follow from it
        for part in ("singular", "listKind"):
            if not names.get(part):
                yield causes.required(f"spec.names.{part}")


def _of_scope(spec: Json) -> Iterator[Cause]:
    scope = spec.get("scope")
    if not scope:
        yield causes.required("spec.scope")
    elif scope not in _SCOPES:
        yield causes.not_supported("spec.scope", scope, _SCOPES)


def _of_versions(spec: Json) -> Iterator[Cause]:
    versions = spec.get("versions") or []
    stored = [one for one in versions if one.get("storage")]
    if len(stored) != 1:
        detail = "must have exactly one version marked as storage version"
        yield causes.invalid("spec.versions", versions, detail)
    for number, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        path = f"spec.versions[{number}].schema.openAPIV3Schema"
        if schema is None:
            yield causes.required(path)
        elif not schema.get("type"):
            yield causes.required(f"{path}.type", "must not be empty at the root")
