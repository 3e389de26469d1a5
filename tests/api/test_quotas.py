"""QuotaSubtrees and quota labels as they are written, and as they must not be."""

from typing import Any

import pytest

from mcad.api.appwrapper import parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.api.quotas import LeafLabels, quota_labels, read_quota
from mcad.core.quota import QuotaChild, QuotaSubtree
from mcad.core.units import SECOND
from tests.api.builders import pod, v1beta2

GI = 1 << 30


def manifest(*children: Any, parent: str | None = "root", tree: str = "gold") -> dict[str, Any]:
    return {
        "apiVersion": "quota.codeflare.dev/v1alpha1",
        "kind": "QuotaSubtree",
        "metadata": {
            "name": "teams",
            "namespace": "quota",
            "uid": "u1",
            "creationTimestamp": "1970-01-01T00:00:07Z",
            "labels": {"tree": tree},
        },
        "spec": {"children": list(children)} | ({"parent": parent} if parent is not None else {}),
    }


def test_a_subtree_as_mcad_writes_it() -> None:
    red = {
        "name": "red",
        "quotas": {
            "disabled": False,
            "hardLimit": True,
            "requests": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": "0"},
        },
    }
    nominal = (("cpu", 2000), ("memory", GI), ("nvidia.com/gpu", 0))
    expected = (QuotaChild("red", nominal, True), QuotaChild("blue"))
    assert read_quota(manifest(red, {"name": "blue"})) == QuotaSubtree(
        "u1", "quota", "teams", 7 * SECOND, "gold", "root", expected
    )


def test_the_root_has_no_parent_and_no_tree_is_none() -> None:
    root = read_quota(manifest({"name": "root"}, parent=None))
    assert root is not None
    assert root.parent == ""
    assert read_quota(manifest(tree="")) is None


@pytest.mark.parametrize(
    ("child", "flaw"),
    [
        ({"name": "a", "quotas": {"requests": {"cpu": "-1"}}}, "cpu: '-1' is negative"),
        ({"name": "a", "quotas": {"requests": {"cpu": "many"}}}, "cpu: 'many' is not a quantity"),
        ({"name": "a", "quotas": {"requests": {"cpu": None}}}, "cpu: "),
        ({}, "name: "),
        ("garbage", "name: "),
        ({"name": 7}, "name: "),
    ],
)
def test_what_cannot_be_read_is_the_flaw_of_its_node_alone(child: Any, flaw: str) -> None:
    read = read_quota(manifest(child, {"name": "good", "quotas": {"requests": {"cpu": 1}}}))
    assert read is not None
    bad, good = read.children
    assert bad.flaw.startswith(flaw)
    assert (bad.nominal, good.flaw) == ((), "")


def test_labels_name_leaves_and_a_queue_of_kueue_does_where_none_does() -> None:
    labels = {"gold": "red", "kueue.x-k8s.io/queue-name": "blue", "n": 7}
    queue = ("kueue.x-k8s.io/queue-name", "blue")
    assert quota_labels(labels) == (("gold", "red"), queue)
    assert quota_labels(labels, "silver") == (("gold", "red"), queue, ("silver", "blue"))
    assert quota_labels(labels, "gold") == (("gold", "red"), queue)


def test_labels_name_leaves_only_if_shares_count() -> None:
    labels = {"gold": "red", "kueue.x-k8s.io/queue-name": "blue"}
    assert LeafLabels().read(labels) == ()
    assert dict(LeafLabels(count=True).read(labels)) == labels
    assert dict(LeafLabels(True, "lines").read(labels)) == {**labels, "lines": "blue"}


def test_the_settings_decide_what_labels_mean() -> None:
    aw = v1beta2(pod())
    aw["metadata"] |= {"labels": {"gold": "red", "kueue.x-k8s.io/queue-name": "blue"}}
    for settings, expected in (
        ({}, {}),
        ({"queueNameTree": "lines"}, {}),
        ({"quotaEnabled": True}, {"gold": "red"}),
        ({"quotaEnabled": True, "queueNameTree": "lines"}, {"gold": "red", "lines": "blue"}),
    ):
        catalog = catalog_of(Config(**settings), WELL_KNOWN)
        named = dict(parse(aw, catalog).workload.quota)
        named.pop("kueue.x-k8s.io/queue-name", None)
        assert named == expected
