"""Patches; what they lead to was compared with kube-apiserver 1.36 by thousands of random ones."""

import copy
from typing import Any

import pytest

from mcad.sim.objects.mergekeys import by_component
from mcad.sim.patching import PatchError, json_patch, merge, merge_keys, strategic

CONFIG_MAP: dict[str, Any] = {
    "metadata": {"name": "c", "labels": {"a/b": "1"}, "finalizers": ["x/y", "x/z"]},
    "data": {"k": "v"},
}


def test_a_merge_patch_merges_objects_removes_nulls_and_replaces_the_rest() -> None:
    patch = {"data": {"k": None, "n": "1"}, "metadata": {"finalizers": ["q"]}, "new": {"a": None}}
    before = copy.deepcopy(CONFIG_MAP)
    assert merge(CONFIG_MAP, patch) == {
        "metadata": {"name": "c", "labels": {"a/b": "1"}, "finalizers": ["q"]},
        "data": {"n": "1"},
        "new": {},
    }
    assert before == CONFIG_MAP


def patched(*operations: dict[str, Any]) -> Any:
    before = copy.deepcopy(CONFIG_MAP)
    result = json_patch(CONFIG_MAP, list(operations))
    assert before == CONFIG_MAP
    return result


@pytest.mark.parametrize(
    ("operation", "finalizers"),
    [
        ({"op": "add", "path": "/metadata/finalizers/-", "value": "n"}, ["x/y", "x/z", "n"]),
        ({"op": "add", "path": "/metadata/finalizers/0", "value": "n"}, ["n", "x/y", "x/z"]),
        ({"op": "add", "path": "/metadata/finalizers/-1", "value": "n"}, ["x/y", "x/z", "n"]),
        ({"op": "remove", "path": "/metadata/finalizers/0"}, ["x/z"]),
        ({"op": "replace", "path": "/metadata/finalizers/1", "value": "n"}, ["x/y", "n"]),
        (
            {"op": "move", "from": "/metadata/finalizers/1", "path": "/metadata/finalizers/0"},
            ["x/z", "x/y"],
        ),
        (
            {"op": "copy", "from": "/data/k", "path": "/metadata/finalizers/-"},
            ["x/y", "x/z", "v"],
        ),
        ({"op": "test", "path": "/metadata/labels/a~1b", "value": "1"}, ["x/y", "x/z"]),
        ({"op": "test", "path": "/data", "value": {"k": "v"}}, ["x/y", "x/z"]),
        ({"op": "test", "path": "/data/missing", "value": None}, ["x/y", "x/z"]),
    ],
)
def test_a_json_patch_changes(operation: dict[str, Any], finalizers: list[str]) -> None:
    assert patched(operation)["metadata"]["finalizers"] == finalizers


def test_a_json_patch_replaces_what_is_missing_as_kube_apiserver_does() -> None:
    operation = {"op": "replace", "path": "/data/new", "value": "1"}
    assert patched(operation)["data"] == {"k": "v", "new": "1"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/k", "value": "w"},
        {"op": "test", "path": "/data/k"},
        {"op": "test", "path": "/metadata/finalizers/2", "value": "x"},
        {"op": "test", "path": "", "value": {}},
        {"op": "remove", "path": "/data/missing"},
        {"op": "remove", "path": "/metadata/finalizers/2"},
        {"op": "remove", "path": "/metadata/finalizers/-"},
        {"op": "replace", "path": "/metadata/finalizers/2", "value": "x"},
        {"op": "add", "path": "/missing/x", "value": "1"},
        {"op": "add", "path": "/metadata/finalizers/3", "value": "x"},
        {"op": "add", "path": "/data/k/x", "value": "x"},
        {"op": "add", "path": "data", "value": "x"},
        {"op": "add", "value": "x"},
        {"op": "move", "from": "/data/missing", "path": "/data/k"},
        {"op": "zap", "path": "/data/k"},
        {"path": "/data/k"},
        "zap",
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused(operation: Any) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch(CONFIG_MAP, [operation])
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert str(caught.value) == ("the server rejected our request due to an error in our request")


def test_true_is_not_one() -> None:
    with pytest.raises(PatchError):
        json_patch({"a": True}, [{"op": "test", "path": "/a", "value": 1}])


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


def names(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


def test_lists_with_a_merge_key_are_merged_by_it() -> None:
    spec = applied(
        {"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}], "args": ["3"]}]}
    )
    first, second = spec["containers"]
    assert first["image"] == "x"
    assert first["args"] == ["3"]
    assert {one["name"]: one["value"] for one in first["env"]} == {"A": "1", "B": "2"}
    assert second == {"name": "d", "image": "y"}


def test_lists_without_a_merge_key_are_replaced() -> None:
    assert applied({"tolerations": [{"key": "u"}]})["tolerations"] == [{"key": "u"}]


def test_scalars_of_a_merged_list_are_united() -> None:
    keys = merge_keys("v1", "ConfigMap")
    patch = {"metadata": {"finalizers": ["x/y", "a/b"]}}
    assert sorted(strategic(POD, patch, keys)["metadata"]["finalizers"]) == ["a/b", "x/y"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/y"]}}
    assert strategic(POD, patch, keys)["metadata"]["finalizers"] == []


def test_a_null_removes() -> None:
    assert "containers" not in applied({"containers": None})


def test_an_item_is_deleted_by_directive() -> None:
    assert names(applied({"containers": [{"name": "c", "$patch": "delete"}]})["containers"]) == [
        "d"
    ]


def test_a_list_is_replaced_by_directive() -> None:
    patch = {"containers": [{"$patch": "replace"}, {"name": "n", "image": "i"}]}
    assert applied(patch)["containers"] == [{"name": "n", "image": "i"}]


def test_an_object_is_replaced_or_emptied_by_directive() -> None:
    keys = merge_keys("v1", "Pod")
    patch = {"metadata": {"labels": {"$patch": "replace", "b": "2"}}}
    assert strategic(POD, patch, keys)["metadata"]["labels"] == {"b": "2"}
    patch = {"metadata": {"labels": {"$patch": "delete"}}}
    assert strategic(POD, patch, keys)["metadata"]["labels"] == {}


def test_the_order_of_items_can_be_set() -> None:
    order = {"$setElementOrder/containers": [{"name": "d"}, {"name": "n"}, {"name": "c"}]}
    assert names(applied(order)["containers"]) == ["d", "c"]
    added = applied({**order, "containers": [{"name": "n", "image": "i"}]})
    assert names(added["containers"]) == ["d", "n", "c"]


def test_one_volume_source_gives_way_to_another() -> None:
    volume = {
        "name": "v",
        "$retainKeys": ["name", "hostPath"],
        "emptyDir": None,
        "hostPath": {"path": "/x"},
    }
    assert applied({"volumes": [volume]})["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_a_deployment_s_strategy_drops_what_is_not_retained() -> None:
    deployment = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"a": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    result = strategic(deployment, patch, merge_keys("apps/v1", "Deployment"))
    assert result == {"spec": {"strategy": {"type": "Recreate"}}}


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        (
            {"containers": [{"image": "z"}]},
            500,
            "map: map[image:z] does not contain declared merge key: name",
        ),
        (
            {"containers": [{"name": "d", "$patch": "zap"}]},
            500,
            "unknown patch type: zap in map: map[$patch:zap name:d]",
        ),
        (
            {"containers": [{"name": "d", "$patch": "merge"}]},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"$setElementOrder/containers": "x"},
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            {
                "$setElementOrder/containers": [{"name": "d"}],
                "containers": [{"name": "c", "image": "q"}],
            },
            500,
            "The order in patch list:\n[map[image:q name:c]]\n doesn't match $setElementOrder "
            "list:\n[map[name:d]]\n",
        ),
        ({"$deleteFromPrimitiveList": ["x"]}, 400, "invalid patch format of primitive list"),
        ({"$retainKeys": ["x"], "hostname": "h"}, 400, "invalid patch format of retainKeys"),
    ],
)
def test_a_malformed_strategic_patch_is_refused_in_the_server_s_words(
    spec: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(PatchError) as caught:
        applied(spec)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_merge_keys_are_known_by_the_name_of_the_type() -> None:
    keys = by_component()
    assert keys["core.v1.Container"]["ports"].key == "containerPort"
    assert keys["core.v1.PodSpec"]["volumes"].strategy == "merge,retainKeys"
    assert keys["meta.v1.ObjectMeta"]["finalizers"].key == ""
