"""Patches; what they lead to was compared with kube-apiserver 1.36 by thousands of random ones."""

import copy
from typing import Any

import pytest

from mcad.sim.patching import PatchError, merge_keys, strategic

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
