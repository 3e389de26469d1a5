"""QuotaSubtrees and quota labels as they are written, and as they must not be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.api.appwrapper import parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.api.quotas import (
    LeafLabels,
    quota_labels,
    read_quota,
    read_quota_status,
    render_quota_status,
)
from mcad.core.state.quota_records import (
    NodeStatus,
    QuotaChild,
    QuotaCondition,
    QuotaSubtree,
    QuotaView,
)
from mcad.core.state.units import SECOND
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
    assert root.parent == ""
    assert read_quota(manifest(tree="")).tree == ""


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


# -- status ----------------------------------------------------------------------------------------

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(0, 2**50)
).map(lambda amounts: tuple(sorted(amounts.items())))
NODES = st.builds(NodeStatus, st.text(min_size=1), *[AMOUNTS] * 5)
CONDITIONS = st.builds(
    QuotaCondition,
    st.sampled_from(["Ready", "Invalid"]),
    st.booleans(),
    st.sampled_from(["InForce", "Cycle"]),
    st.text(),
    st.integers(1, 2**50),
)
VIEWS = st.builds(
    QuotaView,
    st.integers(1, 9),
    st.lists(CONDITIONS, min_size=1).map(tuple),
    st.lists(NODES).map(tuple),
)


@given(VIEWS)
def test_a_status_is_read_as_it_was_rendered(view: QuotaView) -> None:
    """Else a restart would write what is shown already."""
    assert read_quota_status(render_quota_status(view)) == view


def test_a_status_has_canonical_quantities_and_the_fields_of_the_schema() -> None:
    figures = (("cpu", 1500), ("memory", 3 * GI))
    node = NodeStatus("red", figures, (("cpu", 0), ("memory", 5)), (("cpu", 500),), (), figures)
    since = QuotaCondition("Ready", True, "InForce", "", 7 * SECOND)
    assert render_quota_status(QuotaView(3, (since,), (node,))) == {
        "observedGeneration": 3,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "InForce",
                "lastTransitionTime": "1970-01-01T00:00:07.000000Z",
            }
        ],
        "children": [
            {
                "name": "red",
                "nominal": {"cpu": "1500m", "memory": "3Gi"},
                "allocated": {"cpu": "0", "memory": "5"},
                "borrowed": {"cpu": "500m"},
                "waiting": {"cpu": "1500m", "memory": "3Gi"},
            }
        ],
    }


@pytest.mark.parametrize("status", [None, {}, "text", 3])
def test_an_empty_status(status: Any) -> None:
    assert read_quota_status(status) is None


def test_garbage_in_a_status_counts_as_absent() -> None:
    garbage = {"observedGeneration": "x", "conditions": [3], "children": [{"nominal": {"cpu": []}}]}
    view = read_quota_status(garbage)
    assert view.children == (NodeStatus("", (("cpu", 0),)),)
