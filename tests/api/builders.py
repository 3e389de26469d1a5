"""Manifests as users write them, in as few words as the tests need."""

from __future__ import annotations

from typing import Any

from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import WELL_KNOWN, Resource
from mcad.api.config import Config, catalog_of
from mcad.api.wrapped_kinds import DEFAULT_WRAPPED, WrappedGroup

Map = dict[str, Any]

WIDGET = Resource("example.com", "v1", "widgets", "Widget")
MORE = {
    "example.com": ("widgets",),
    "kubeflow.org": ("notebooks",),
    "": ("podtemplates", "replicationcontrollers"),
    "trainer.kubeflow.org": ("trainjobs",),
    "serving.kserve.io": ("inferenceservices",),
    "sparkoperator.k8s.io": ("sparkapplications",),
}
WRAPPED = tuple(WrappedGroup(apiGroup=group, resources=names) for group, names in MORE.items())
CATALOG = catalog_of(Config(wrappedResources=DEFAULT_WRAPPED + WRAPPED), [*WELL_KNOWN, WIDGET])

Mi = 1 << 20
Gi = 1 << 30


def container(cpu: Any = "1", memory: Any = None, **more: Any) -> Map:
    requests = {"cpu": cpu} | ({"memory": memory} if memory is not None else {})
    return {"name": "main", "image": "busybox", "resources": {"requests": requests}} | more


def pod_spec(*containers: Map, **spec: Any) -> Map:
    return {"containers": list(containers) or [container()]} | spec


def template(*containers: Map, labels: Map | None = None, **spec: Any) -> Map:
    meta = {"metadata": {"labels": labels}} if labels else {}
    return meta | {"spec": pod_spec(*containers, **spec)}


def obj(api_version: str, kind: str, name: str = "thing", spec: Map | None = None) -> Map:
    made: Map = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
    return made | ({"spec": spec} if spec is not None else {})


def pod(name: str = "thing", *containers: Map, **spec: Any) -> Map:
    return obj("v1", "Pod", name, pod_spec(*containers, **spec))


def deployment(name: str = "thing", replicas: Any = 2, *containers: Map) -> Map:
    return obj(
        "apps/v1", "Deployment", name, {"replicas": replicas, "template": template(*containers)}
    )


def job(name: str = "thing", **spec: Any) -> Map:
    return obj("batch/v1", "Job", name, {"template": template(), **spec})


def config_map(name: str = "thing") -> Map:
    return obj("v1", "ConfigMap", name) | {"data": {"a": "b"}}


def generic(thing: Any, **more: Any) -> Map:
    return {"generictemplate": thing} | more


def v1beta1(*things: Any, **spec: Any) -> Map:
    """An AppWrapper with one GenericItem per object, or per complete item."""
    items = [one if "generictemplate" in one else generic(one) for one in things]
    return wrapper({"resources": {"GenericItems": items}, **spec}, "v1beta1")


def v1beta2(*things: Any, **spec: Any) -> Map:
    """An AppWrapper with one component per object, or per complete component."""
    components = [one if "template" in one else {"template": one} for one in things]
    return wrapper({"components": components, **spec}, "v1beta2")


def wrapper(spec: Any, version: str = "v1beta1") -> Map:
    return {
        "apiVersion": f"workload.codeflare.dev/{version}",
        "kind": "AppWrapper",
        "metadata": {
            "name": "aw",
            "namespace": "team",
            "uid": "0b1e",
            "generation": 3,
            "creationTimestamp": "2023-07-21T11:18:27Z",
        },
        "spec": spec,
    }


def read(appwrapper: Map) -> Parsed:
    return parse(appwrapper, CATALOG)


def accepted(appwrapper: Map) -> Parsed:
    """The outcome of an AppWrapper that has to be faultless."""
    parsed = read(appwrapper)
    assert not parsed.problems, [str(problem) for problem in parsed.problems]
    return parsed
