"""Defaults of built-in kinds against what kube-apiserver 1.36 stored (golden/defaults.json).

What the golden file leaves out is not a default: what the registry and admission set (status, uid,
generation, finalizers, the taint of a new node), and drawn numbers (addresses, node ports).
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from mcad.sim.kinds import BUILTIN
from mcad.sim.objects import builtin
from mcad.sim.objects.decoding import decode
from mcad.sim.objects.defaults import default
from mcad.sim.objects.jobdefaults import job_defaults

GOLDEN = json.loads((Path(__file__).parent / "golden" / "defaults.json").read_text())
KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTIN}


def completed(given: dict[str, Any]) -> dict[str, Any]:
    kind = KINDS[given["apiVersion"], given["kind"]]
    struct = builtin.type_of(kind)
    assert struct is not None
    decoded, unknown = decode(given, struct)
    assert unknown == []
    before = copy.deepcopy(decoded)
    result = default(kind, decoded)
    assert decoded == before
    return result


def without_drawn(obj: dict[str, Any]) -> dict[str, Any]:
    if obj["kind"] in {"Node", "Namespace"}:
        obj.pop("spec", None)
    if obj["kind"] != "Node":
        obj.pop("status", None)
    if obj["kind"] == "Service" and obj["spec"].get("clusterIP", "None") != "None":
        obj["spec"].pop("clusterIP")
        obj["spec"].pop("clusterIPs")
    return obj


@pytest.mark.parametrize(
    "case", GOLDEN, ids=lambda case: f"{case['given']['kind']}-{len(json.dumps(case['given']))}"
)
def test_defaults_are_those_of_kube_apiserver(case: dict[str, Any]) -> None:
    given = case["given"]
    namespace = case["stored"]["metadata"].get("namespace")
    if namespace:
        given = given | {"metadata": given["metadata"] | {"namespace": namespace}}
    assert without_drawn(completed(given)) == case["stored"]


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "uid": "u-1"},
    "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}},
}
GENERATED = {
    "batch.kubernetes.io/controller-uid": "u-1",
    "batch.kubernetes.io/job-name": "j",
    "controller-uid": "u-1",
    "job-name": "j",
}


def test_labels_that_somebody_has_given_are_not_replaced() -> None:
    job = copy.deepcopy(JOB)
    job["spec"]["template"]["metadata"]["labels"] = {"job-name": "other"}
    labels = job_defaults(job)["spec"]["template"]["metadata"]["labels"]
    assert labels == GENERATED | {"job-name": "other"}  # and validation refuses it
