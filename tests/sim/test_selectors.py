"""Selectors of fields and of nodes: what they select, and the words of kube-apiserver 1.36."""

import pytest

from mcad.sim import selectors

NODE = {"metadata": {"name": "n1", "labels": {"gpus": "4", "zone": "a"}}}


@pytest.mark.parametrize(
    ("term", "selected"),
    [
        ({}, False),
        ({"matchExpressions": []}, False),
        ({"matchExpressions": [{"key": "gpus", "operator": "Gt", "values": ["3"]}]}, True),
        ({"matchExpressions": [{"key": "gpus", "operator": "Lt", "values": ["4"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["3"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b", "a"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}, False),
        (
            {
                "matchExpressions": [{"key": "zone", "operator": "Exists"}],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}],
            },
            False,
        ),
    ],
)
def test_node_selector_terms(term: dict[str, object], selected: bool) -> None:
    assert selectors.node_selector_terms([term], NODE) is selected
    assert selectors.node_selector_terms([{}, term], NODE) is selected


def test_no_node_selector_term_selects_no_node() -> None:
    assert not selectors.node_selector_terms([], NODE)
