"""Selectors of fields and of nodes: what they select, and the words of kube-apiserver 1.36."""

import pytest

from mcad.sim import selectors

POD = {"metadata": {"name": "a,b"}, "spec": {"nodeName": "n"}}
ALLOWED = {
    "metadata.name": lambda pod: pod["metadata"]["name"],
    "spec.nodeName": lambda pod: pod["spec"]["nodeName"],
}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("=", True),
        ("spec.nodeName=n", True),
        ("spec.nodeName==n,,metadata.name!=x", True),
        ("spec.nodeName!=n", False),
        ("metadata.name=a\\,b", True),
        ("metadata.name=a\\\\", False),
    ],
)
def test_a_field_selector_selects(text: str, selected: bool) -> None:
    assert selectors.fields(text, ALLOWED)(POD) is selected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        ("metadata.name=a\\q", "invalid field selector: invalid escape sequence: \\q"),
        ("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"),
        ("spec.x=1,metadata.name=a", "field label not supported: spec.x"),
    ],
)
def test_a_malformed_field_selector_is_refused_in_the_server_s_words(
    text: str, message: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared
        selectors.fields(text, ALLOWED)
    assert str(caught.value) == message


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
