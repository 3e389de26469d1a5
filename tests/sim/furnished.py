"""Objects of every kind on a real control plane, in various states."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mcad.api.crd import crds
from mcad.kube.types import Json
from mcad.sim.kinds import CRDS, KindTable
from tests.controlplane.controlplane import ControlPlane

_KINDS = KindTable()
CREATED = "2023-11-14T22:12:20Z"


def create_all(plane: ControlPlane) -> None:
    objects = list(yaml.safe_load_all((Path(__file__).parent / "tables.yaml").read_text()))
    for obj in [*objects, *crds()]:
        _create(plane, _KINDS, obj)
    crd = next(one for one in objects if one["metadata"]["name"] == "things.test.example")
    kinds = KindTable()
    for one in [crd, *crds()]:
        kinds.set_crd(one)
    ours = [one["metadata"]["name"] for one in crds()]
    for name in ("things.test.example", "bares.test.example", *ours):
        path = f"/apis/{CRDS[0]}/v1/{CRDS[1]}/{name}"
        plane.wait_for(lambda path=path: _has(plane, path, "Established"), what=name)
    for number, thing in enumerate(_things()):
        metadata = {"name": f"t-{number}", "annotations": {"a.b/c": "escaped"}}
        body = {"apiVersion": "test.example/v1", "kind": "Thing", "metadata": metadata} | thing
        _create(plane, kinds, body)
    head = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper"}
    _create(plane, kinds, head | {"metadata": {"name": "aw"}, "spec": {"components": []}})
    told = {"type": "Ready", "status": "False", "reason": "NoRoot", "message": "why"}
    tree = {"apiVersion": "quota.codeflare.dev/v1alpha1", "kind": "QuotaSubtree"}
    tree |= {"metadata": {"name": "qst", "labels": {"tree": "teams"}}, "spec": {"parent": "root"}}
    _create(plane, kinds, tree | {"status": {"conditions": [told]}})
    pause = {"apiVersion": "workload.codeflare.dev/v1alpha1", "kind": "DispatchPause"}
    _create(plane, kinds, pause | {"metadata": {"name": "p"}, "spec": {"reason": "upgrade"}})
    failing = "/apis/batch/v1/namespaces/default/jobs/failing"
    plane.wait_for(lambda: _has(plane, failing, "Failed"), 60, "the failing job has failed")
    finalized = {"name": "held", "finalizers": ["test.example/hold"]}
    held = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": finalized}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    _create(plane, _KINDS, held | {"spec": spec})
    plane.request("DELETE", "/api/v1/namespaces/default/persistentvolumeclaims/held")


def _has(plane: ControlPlane, path: str, condition: str) -> bool:
    conditions = (plane.get(path).get("status") or {}).get("conditions") or []
    return any((one["type"], one["status"]) == (condition, "True") for one in conditions)


def _things() -> Iterator[Json]:
    values: list[Any] = ["text", "12", 12, 12.0, 1.5, -3, 1e-7, 10**16, True, False]
    values += [[], {}, [1, "a"], {"b": 1, "a": "b"}, CREATED, "2023-11-14", "ü"]
    for value in values:
        yield {"spec": {"value": value}}
    yield {"spec": {"list": [{"n": 1}, {"n": 2}]}}
    yield {"spec": {"list": []}}
    yield {"spec": {"list": "text", "value": {"value": {}}}}
    yield {}


def _create(plane: ControlPlane, kinds: KindTable, obj: Json) -> None:
    kind = kinds.by_kind(obj["apiVersion"], obj["kind"])
    assert kind is not None, obj["kind"]
    namespace = obj["metadata"].get("namespace", "default")

    def posted() -> int:
        """The status of the answer; 0 while a kind that was just established is not served yet."""
        status, answer = plane.request("POST", kind.resource.path(namespace), obj)
        assert status in {201, 404, 409}, (obj["kind"], answer["message"])
        return 0 if status == 404 else status

    if plane.wait_for(posted) == 201 and "status" in obj and kind.has_status:
        path = kind.resource.path(namespace, obj["metadata"]["name"], "status")
        patch, form = {"status": obj["status"]}, "application/merge-patch+json"
        plane.ask("PATCH", path, patch, content_type=form)
