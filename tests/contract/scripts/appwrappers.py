"""Our own kind, in both dialects: what its schema and its rules refuse, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.contract.objects import appwrapper, old_appwrapper
from tests.contract.script import Script, merge, script

SAMPLES = Path(__file__).parents[3] / "samples"


def old_path(s: Script) -> str:
    return f"/apis/workload.codeflare.dev/v1beta1/namespaces/{s.namespace}/appwrappers"


@script
def aw_samples(s: Script) -> None:
    for file in sorted(SAMPLES.glob("*.yaml")):
        for number, body in enumerate(yaml.safe_load_all(file.read_text())):
            if body and body["kind"] == "AppWrapper":
                version = body["apiVersion"].rpartition("/")[2]
                path = old_path(s).replace("v1beta1", version)
                label = f"{file.stem} {number}"
                s.post(label, path, body, fieldValidation="Strict")
                name = body["metadata"]["name"]
                s.get(f"{label} in v1beta1", f"{old_path(s)}/{name}")
                s.get(f"{label} in v1beta2", f"appwrappers/{name}")


@script
def aw_refused(s: Script) -> None:
    wrappers = s.on("appwrappers")

    def post(label: str, spec: Any, base: Any = None, **params: Any) -> None:
        body = merge(base or appwrapper("x"), {"spec": spec})
        wrappers.post(label, body, **params)

    wrappers.post("no spec", merge(appwrapper("x"), {"spec": None}))
    wrappers.post("empty spec", merge(appwrapper("x"), {"spec": {"components": None}}))
    wrappers.post("spec a list", appwrapper("x") | {"spec": []})
    post("both dialects", {"resources": {"GenericItems": []}})
    post("neither", {"components": None})
    post("components a map", {"components": {}})
    post("component without a template", {"components": [{}]})
    post("template a text", {"components": [{"template": "x"}]})
    post("priority a text", {"priority": "high"})
    post("priority a fraction", {"priority": 1.5})
    post("suspend a text", {"suspend": "yes"})
    post("pod set without a path", {"components": [{"template": {}, "podSets": [{}]}]})
    post(
        "pod set with a text",
        {"components": [{"template": {}, "podSets": [{"path": "x", "replicas": "2"}]}]},
    )
    post("unknown, strict", {"nonsense": 1}, fieldValidation="Strict")
    post(
        "unknown twice, strict",
        {"nonsense": 1, "components": [{"template": {}, "nonsense": 2}]},
        fieldValidation="Strict",
    )
    post("scheduling a text", {"schedulingSpec": "x"})
    wrappers.get("none of them is there")
    wrappers.post("unknown, warned", merge(appwrapper("y"), {"spec": {"nonsense": 1}}))
    wrappers.post("unknown at the top", appwrapper("z") | {"nonsense": 1})
    wrappers.post("bad name", appwrapper("Bad_Name"))
    wrappers.post("long name", appwrapper("x" * 70))
    wrappers.post("bad label", merge(appwrapper("l"), {"metadata": {"labels": {"a b": "c"}}}))
    wrappers.post(
        "generateName", merge(appwrapper("l"), {"metadata": {"name": None, "generateName": "aw-"}})
    )
    wrappers.get("all")


@script
def aw_refused_old(s: Script) -> None:
    path = old_path(s)

    def post(label: str, spec: Any, **params: Any) -> None:
        s.post(label, path, merge(old_appwrapper("x"), {"spec": spec}), **params)

    def item(label: str, **fields: Any) -> None:
        post(label, {"resources": {"GenericItems": [fields]}})

    amounts = {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": {}}}
    rules = {"minAvailable": 1, "requeuing": {"timeInSeconds": 60}}
    post("items a map", {"resources": {"GenericItems": {}}})
    item("item without a template", replicas=1)
    item("replicas a text", replicas="x", generictemplate={})
    item("negative replicas", replicas=-1, generictemplate={})
    item(
        "custom pod resources",
        replicas=1,
        generictemplate={"kind": "X"},
        custompodresources=[{"replicas": 1, **amounts}],
    )
    unknown = {"resources": {"items": [], "GenericItems": []}, "x": 1}
    post("unknown, strict", unknown, fieldValidation="Strict")
    good = old_appwrapper("good", priority=5, priorityslope=0.5, schedulingSpec=rules)
    s.post("good", path, good)
    s.get("good in the later dialect", "appwrappers/good")
    s.patch("other items", f"{path}/good", {"spec": {"resources": {"GenericItems": []}}})
    s.patch("components instead", f"{path}/good", {"spec": {"resources": None, "components": []}})
    s.get("at the end", f"{path}/good")


@script
def aw_rules(s: Script) -> None:
    wrapper_w_status = s.on("appwrappers/w/status")
    first = {
        "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        "podSets": [{"path": "template", "replicas": 2}],
    }
    made = s.post("made", "appwrappers", appwrapper("w", components=[first]))

    def patch(label: str, spec: Any) -> None:
        s.patch(label, "appwrappers/w", {"spec": spec})

    def change(label: str, **changes: Any) -> None:
        patch(label, {"components": [merge(first, changes)]})

    three = [{"path": "template", "replicas": 3}]
    change("template changed", template={"kind": "Secret"})
    change("replicas changed", podSets=three)
    change("path changed", podSets=[{"path": "spec", "replicas": 2}])
    patch("one more", {"components": [first, first]})
    patch("none", {"components": []})
    patch("the other dialect", {"components": None, "resources": {"GenericItems": []}})
    change("infos added", podSetInfos=[{"nodeSelector": {"a": "b"}}])
    patch("managedBy added", {"managedBy": "example.com/x"})
    patch("priority", {"priority": 9})
    patch("suspend", {"suspend": True})
    patch("priority a text", {"priority": "x"})
    change("two faults", template={"kind": "Secret"}, podSets=three)
    another = {"spec": {"components": [{"template": {"kind": "X"}}]}}
    s.put("by a put", "appwrappers/w", s.get("now", "appwrappers/w").merged(another))
    s.post("managed", "appwrappers", appwrapper("m", managedBy="example.com/x"))
    s.patch("managed by another", "appwrappers/m", {"spec": {"managedBy": "example.com/y"}})
    s.patch("managed by none", "appwrappers/m", {"spec": {"managedBy": None}})
    wrapper_w_status.patch("status: state", {"status": {"state": "Nonsense"}})
    wrapper_w_status.patch("status: unknown", {"status": {"nonsense": 1}}, fieldValidation="Strict")
    wrapper_w_status.patch("status: a list", {"status": []})
    twice = [{"type": "A", "status": "True"}, {"type": "A", "status": "False"}]
    wrapper_w_status.patch("status: conditions", {"status": {"conditions": twice}})
    wrapper_w_status.patch("status: a condition that is none", {"status": {"conditions": ["x"]}})
    s.get("at the end", "appwrappers/w")
    s.watch("all of it", "appwrappers", resourceVersion=made.version)
