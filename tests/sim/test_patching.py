"""Patches, compared with kube-apiserver 1.36 by thousands of random ones; and server-side apply as
``kubectl apply --server-side -f`` of a CRD needs it."""

import copy
from random import Random
from typing import Any

import pytest
import yaml

from mcad.api.crd import crds
from mcad.kube.port import Request
from mcad.sim.clock import VirtualClock
from mcad.sim.patching import PatchError, apply, merge_keys, strategic
from mcad.sim.registry import Registry
from mcad.sim.serving.patches import APPLY
from mcad.sim.serving.server import SimApi
from tests.sim.worlds import virtually

POD: dict[str, Any] = {
    "metadata": {"finalizers": ["x/y"], "labels": {"a": "1"}},
    "spec": {
        "containers": [
            {"name": "c", "image": "x", "args": ["1", "2"], "env": [{"name": "A", "value": "1"}]},
            {"name": "d", "image": "y"},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [{"key": "t"}],
    },
}


def applied(spec: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy(POD)
    result = strategic(POD, {"spec": spec}, merge_keys("v1", "Pod"))["spec"]
    assert before == POD
    return result


def test_one_volume_source_gives_way_to_another() -> None:
    volume = {
        "name": "v",
        "$retainKeys": ["name", "hostPath"],
        "emptyDir": None,
        "hostPath": {"path": "/x"},
    }
    assert applied({"volumes": [volume]})["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"containers": [{"image": "z"}]}, "an item does not contain the merge key name"),
        ({"containers": [{"name": "d", "$patch": "zap"}]}, "unknown patch type: zap"),
        (
            {"containers": [{"name": "d", "$patch": "merge"}]},
            "merging lists cannot yet be specified in the patch",
        ),
        ({"$setElementOrder/containers": "x"}, "invalid patch format of setElementOrder list"),
        (
            {
                "$setElementOrder/containers": [{"name": "d"}],
                "containers": [{"name": "c", "image": "q"}],
            },
            "the order in the patch's list does not match its $setElementOrder",
        ),
        ({"$deleteFromPrimitiveList": ["x"]}, "invalid patch format of primitive list"),
        ({"$retainKeys": ["x"], "hostname": "h"}, "invalid patch format of retainKeys"),
    ],
)
def test_a_malformed_strategic_patch_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchError) as caught:
        applied(spec)
    assert str(caught.value) == message


def test_maps_are_merged_and_all_else_is_replaced() -> None:
    live = {"a": {"b": 1, "c": 2}, "l": [1, 2], "kept": "x"}
    assert apply(live, {"a": {"c": 3, "d": 4}, "l": [9]}) == {
        "a": {"b": 1, "c": 3, "d": 4},
        "l": [9],
        "kept": "x",
    }
    assert live == {"a": {"b": 1, "c": 2}, "l": [1, 2], "kept": "x"}


@virtually
async def test_our_crd_is_applied_once_and_once_more() -> None:
    api, crd = SimApi(Registry(VirtualClock(), Random(1))), crds()[0]
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
    answers = [
        api.answer(Request("PATCH", path, {"fieldManager": "kubectl"}, body, APPLY))
        for body in (crd, yaml.safe_dump(crd).encode())
    ]
    assert [answer.status for answer in answers] == [201, 200]
    first, again = (answer.json() for answer in answers)
    assert first == again  # nothing was written
    served = api.answer(Request("GET", "/apis/workload.codeflare.dev/v1beta2/appwrappers"))
    assert served.status == 200


@virtually
async def test_an_object_of_another_kind_is_refused() -> None:
    api = SimApi(Registry(VirtualClock(), Random(1)))
    body = {"apiVersion": "v1", "kind": "Secret"}
    path = "/api/v1/namespaces/default/configmaps/m"
    answer = api.answer(Request("PATCH", path, {}, body, APPLY))
    wrong = "the kind in the data (Secret) is not ConfigMap"
    assert (answer.status, answer.json()["message"]) == (400, wrong)
