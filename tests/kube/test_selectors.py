"""Selectors: what they select, and the words of kube-apiserver 1.36 for what it does not parse."""

import pytest

from mcad.kube import selectors

FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{FORM}')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    f"or '12345', regex used for validation is '({FORM})?')"
)
UNABLE = "unable to parse requirement: "
LABELS = {"app": "web", "tier": "", "size": "12", "in": "notin"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,size!=13", True),
        ("app=api", False),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("! app", False),
        ("app in (api, web)", True),
        ("app notin (web)", False),
        ("missing notin (web)", True),
        ("missing!=x", True),
        ("tier=", True),
        ("tier", True),
        ("tier in ()", True),
        ("app in (,web)", True),
        ("missing in (,x)", False),
        ("size>11", True),
        ("size<12", False),
        ("app>1", False),
        (" app = web , tier == ", True),
        ("in in (in,notin)", True),
        ("in=in", False),
    ],
)
def test_a_label_selector_selects(text: str, selected: bool) -> None:
    assert selectors.labels(text)(LABELS) is selected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", UNABLE + "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a in ", UNABLE + "found '' expected: '('"),
        ("a in (", UNABLE + "found '', expected: ',', ')' or identifier"),
        ("a in (b", UNABLE + "found '', expected: ',' or ')'"),
        ("a in (b c)", UNABLE + "found 'c', expected: ',' or ')'"),
        ("a in (b,(", UNABLE + "found '(', expected: ',', or identifier"),
        ("!", UNABLE + "found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b,,c", "found ',', expected: identifier after ','"),
        ("a===b", UNABLE + "found '=', expected: identifier"),
        ("a=(b", UNABLE + "found '(', expected: identifier"),
        ("a!", UNABLE + "found '!', expected: in, notin, =, ==, !=, gt, lt"),
        (
            "a>x",
            UNABLE + "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
        ),
        ("-a=b", UNABLE + f'<nil>: Invalid value: "-a": {KEY}'),
        ("/x", UNABLE + '<nil>: Invalid value: "/x": prefix part must be non-empty'),
        ("a=-b", UNABLE + f'values[0][a]: Invalid value: "-b": {VALUE}'),
        (
            "a in (c-,-b)",
            UNABLE + f'[values[0][a]: Invalid value: "-b": {VALUE}, '
            f'values[1][a]: Invalid value: "c-": {VALUE}]',
        ),
        (
            f"a={'x' * 64}",
            UNABLE + f'values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
        ),
    ],
)
def test_a_malformed_label_selector_is_refused_in_the_server_s_words(
    text: str, message: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared
        selectors.labels(text)
    assert str(caught.value) == message


def test_a_missing_label_selector_object_selects_nothing_an_empty_one_everything() -> None:
    assert not selectors.label_selector(None)(LABELS)
    assert selectors.label_selector({})(LABELS)
    assert selectors.label_selector({"matchLabels": {}})({})


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        ({"key": "app", "operator": "In", "values": ["web"]}, True),
        ({"key": "app", "operator": "NotIn", "values": ["web"]}, False),
        ({"key": "missing", "operator": "NotIn", "values": ["web"]}, True),
        ({"key": "tier", "operator": "Exists"}, True),
        ({"key": "tier", "operator": "DoesNotExist"}, False),
    ],
)
def test_a_label_selector_object_joins_labels_and_expressions(
    expression: dict[str, object], selected: bool
) -> None:
    selector = {"matchLabels": {"size": "12"}, "matchExpressions": [expression]}
    assert selectors.label_selector(selector)(LABELS) is selected
    assert not selectors.label_selector({**selector, "matchLabels": {"size": "1"}})(LABELS)


def test_an_unknown_operator_of_an_object_is_named() -> None:
    with pytest.raises(ValueError, match='"Gt" is not a valid label selector operator'):
        selectors.label_selector({"matchExpressions": [{"key": "a", "operator": "Gt"}]})
