"""Whatever people submit: they are told which field is wrong and what to do, and nobody else waits.

A bad manifest ends in one of three ways. The API server refuses it by the schema, naming the field.
Or the dispatcher holds it, with a condition and a Warning Event. Or the API server refuses one of
its items; then it has failed, with the server's words, and nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mcad.api.labels import APPWRAPPER_UID
from mcad.api.models import MAX_ITEMS
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import (
    LONG,
    NAMESPACE,
    components,
    condition,
    config_map,
    create,
    deployment,
    events,
    generic,
    get,
    in_state,
    job,
    patch,
    pod,
    post,
    state,
    wait_until_quiet,
    wrapper,
    writes,
)
from tests.e2e.process import Dispatcher

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

ITEM = "spec.resources.GenericItems[0]"
TEMPLATE = f"{ITEM}.generictemplate"
COMPONENT = "spec.components[0]"
MEBIBYTE = 1 << 20
KINDS = (
    "/api/v1/pods",
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/batch/v1/jobs",
)


def changed(base: Json, path: str, value: Any) -> Json:
    """The object with another value at a path like ``spec.containers.0.image``; None takes out."""
    *way, last = path.split(".")
    owner: Any = base
    for step in way:
        owner = owner[int(step)] if isinstance(owner, list) else owner.setdefault(step, {})
    if value is None:
        del owner[last]
    else:
        owner[int(last) if isinstance(owner, list) else last] = value
    return base


def bad_pod(path: str, value: Any, name: str = "x") -> Json:
    return changed(pod(name), path, value)


def item_with(template: Json, **more: Any) -> Json:
    """The spec of one generic item that has more than a template."""
    return {"resources": {"GenericItems": [{"generictemplate": template, **more}]}}


def component_with(template: Json, **more: Any) -> Json:
    """The same in the other dialect."""
    return {"components": [{"template": template, **more}]}


def thing(api_version: str, kind: str, name: str = "x", **more: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def deep(levels: int) -> Json:
    """Maps within maps."""
    found: Json = {}
    for _ in range(levels):
        found = {"a": found}
    return found


# -- refused by the schema -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refused:
    """What the API server does not let in, and what its answer has to contain."""

    spec: Any
    words: tuple[str, ...]
    version: str = "v1beta1"
    code: int = 422


ONE_OF = "exactly one of resources (v1beta1) and components (v1beta2) is needed"
REQUESTS = f"{ITEM}.custompodresources[0].requests.cpu"

REFUSED = {
    "neither dialect": Refused({"priority": 1}, ("spec", ONE_OF)),
    "both dialects": Refused(item_with(pod("x")) | component_with(pod("y")), ("spec", ONE_OF)),
    "no spec": Refused(None, ("spec: Required value",)),
    "a list for a map": Refused(
        {"resources": [pod("x")]}, ("spec.resources", "must be of type object")
    ),
    "a map for a list": Refused(
        {"components": {"template": pod("x")}}, ("spec.components", "must be of type array")
    ),
    "a text for a number": Refused(
        item_with(pod("x")) | {"priority": "high"}, ("spec.priority", "must be of type integer")
    ),
    "a text for a count": Refused(
        item_with(pod("x"), replicas="2"), (f"{ITEM}.replicas", "must be of type integer")
    ),
    "a number for a text": Refused(
        item_with(pod("x"), completionstatus=1),
        (f"{ITEM}.completionstatus", "must be of type string"),
    ),
    "too many items": Refused(
        {"components": [{"template": config_map(f"x-{i}")} for i in range(MAX_ITEMS + 1)]},
        ("spec.components: Too many", f"at most {MAX_ITEMS} items"),
        "v1beta2",
    ),
    "a component without a template": Refused(
        {"components": [{"podSets": []}]}, (f"{COMPONENT}.template: Required value",), "v1beta2"
    ),
    "a template without kind": Refused(
        item_with(changed(pod("x"), "kind", None)), (f"{TEMPLATE}.kind: Required value",)
    ),
    "a template without apiVersion": Refused(
        component_with(changed(pod("x"), "apiVersion", None)),
        (f"{COMPONENT}.template.apiVersion: Required value",),
        "v1beta2",
    ),
    "a template that is a text": Refused(
        item_with("kind: Pod"),  # type: ignore[arg-type]
        (TEMPLATE, "must be of type object"),
    ),
    "a declared quantity with a blank": Refused(
        item_with(
            thing("v1", "ConfigMap"),
            custompodresources=[{"replicas": 1, "requests": {"cpu": "1 core"}}],
        ),
        (REQUESTS, "should match"),
    ),
    "a pod set without a path": Refused(
        component_with(pod("x"), podSets=[{"replicas": 1}]),
        (f"{COMPONENT}.podSets[0].path: Required value",),
        "v1beta2",
    ),
    "more than etcd takes": Refused(
        item_with(config_map("x", {"k": "x" * (4 * MEBIBYTE)})), ("too large",), code=413
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_the_schema(bench: Bench, name: str) -> None:
    bad = REFUSED[name]
    manifest = wrapper(bench.named(name), bad.spec, bad.version)
    if bad.spec is None:
        del manifest["spec"]
    code, answer = post(bench.plane, manifest)
    assert code == bad.code, answer
    for words in bad.words:
        assert words in answer["message"]
