"""Rights as a set that can be compared: what roles grant, and what the audit log saw used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

Object = dict[str, Any]


class Right(NamedTuple):
    """``namespace`` is empty for all of them, ``name`` for every name."""

    namespace: str
    group: str
    resource: str
    verb: str
    name: str = ""


def granted_to(objects: Iterable[Object], account: str, namespace: str) -> set[Right]:
    """What the roles that are bound to a service account grant it."""
    objects = list(objects)
    subject = ("ServiceAccount", account, namespace)
    return {
        right
        for binding in objects
        if binding["kind"] in ("ClusterRoleBinding", "RoleBinding")
        for one in binding["subjects"]
        if (one["kind"], one["name"], one.get("namespace", "")) == subject
        for right in granted_by(_role(objects, binding), _namespace(binding))
    }


def granted_by(role: Object, namespace: str = "") -> Iterator[Right]:
    """What a role grants where it is bound."""
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Right(namespace, group, resource, verb, name)


def _role(objects: list[Object], binding: Object) -> Object:
    ref = binding["roleRef"]
    (role,) = [
        one
        for one in objects
        if (one["kind"], one["metadata"]["name"]) == (ref["kind"], ref["name"])
        and (ref["kind"] == "ClusterRole" or _namespace(one) == _namespace(binding))
    ]
    return role


def _namespace(obj: Object) -> str:
    found: str = obj["metadata"].get("namespace", "")
    return found
