"""Which nodes admit a pod: operator by operator as kube-scheduler decides it."""

import pytest

from mcad.core.nodes.filters import admits, in_service
from mcad.core.state.model import Constraint, Node, Requirement, Toleration
from tests.core.builders import needs, node, on, taint, tolerates

ZONED = node(labels={"zone": "a", "cores": "16", "empty": ""})


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (needs("zone", "In", "a", "b"), True),
        (needs("zone", "In", "b"), False),
        (needs("gone", "In", "a"), False),
        (needs("zone", "In"), False),
        (needs("zone", "NotIn", "b"), True),
        (needs("zone", "NotIn", "a"), False),
        (needs("gone", "NotIn", "a"), True),
        (needs("zone", "NotIn"), False),
        (needs("zone", "Exists"), True),
        (needs("empty", "Exists"), True),
        (needs("gone", "Exists"), False),
        (needs("zone", "Exists", "a"), False),
        (needs("gone", "DoesNotExist"), True),
        (needs("zone", "DoesNotExist"), False),
        (needs("gone", "DoesNotExist", "a"), False),
        (needs("cores", "Gt", "15"), True),
        (needs("cores", "Gt", "16"), False),
        (needs("cores", "Lt", "17"), True),
        (needs("cores", "Lt", "16"), False),
        (needs("cores", "Gt", "-1"), True),
        (needs("cores", "Gt", "+15"), True),
        (needs("gone", "Lt", "1"), False),
        (needs("zone", "Gt", "1"), False),
        (needs("cores", "Gt", "1.5"), False),
        (needs("cores", "Gt", "1_0"), False),
        (needs("cores", "Gt", "٣"), False),
        (needs("cores", "Gt", " 1"), False),
        (needs("cores", "Gt"), False),
        (needs("cores", "Gt", "1", "2"), False),
        (needs("cores", "Lt", "9223372036854775807"), True),
        (needs("cores", "Lt", "9223372036854775808"), False),
        (needs("zone", "in", "a"), False),
        (needs("metadata.name", "In", "n1", field=True), True),
        (needs("metadata.name", "In", "n2", field=True), False),
        (needs("metadata.name", "NotIn", "n2", field=True), True),
        (needs("metadata.name", "NotIn", "n1", field=True), False),
        (needs("metadata.name", "In", "n1", "n2", field=True), False),
        (needs("metadata.name", "Exists", field=True), False),
        (needs("metadata.name", "Gt", "n0", field=True), False),
        (needs("metadata.uid", "In", "n1", field=True), False),
    ],
    ids=str,
)
def test_one_requirement(requirement: Requirement, expected: bool) -> None:
    assert admits(ZONED, on((requirement,))) is expected


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(None, True, id="no affinity admits everywhere"),
        pytest.param((), False, id="an affinity without terms admits nowhere"),
        pytest.param(((),), False, id="an empty term matches nothing"),
        pytest.param(((), (needs("zone", "Exists"),)), True, id="an empty term spoils no other"),
        pytest.param(
            ((needs("zone", "In", "a"), needs("cores", "Lt", "9")),),
            False,
            id="requirements of a term are ANDed",
        ),
        pytest.param(
            ((needs("zone", "In", "b"),), (needs("cores", "Gt", "9"),)),
            True,
            id="terms are ORed",
        ),
        pytest.param(
            ((needs("metadata.name", "In", "n1", field=True), needs("zone", "In", "b")),),
            False,
            id="fields and labels of a term are ANDed",
        ),
        pytest.param(
            ((needs("zone", "Nonsense"),), (needs("zone", "In", "a"),)),
            True,
            id="a term with an error matches nothing and spoils no other",
        ),
    ],
)
def test_terms(affinity: tuple[tuple[Requirement, ...], ...] | None, expected: bool) -> None:
    assert admits(ZONED, Constraint(affinity=affinity)) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [({"zone": "a"}, True), ({"zone": "b"}, False), ({"gone": ""}, False), ({"empty": ""}, True)],
)
def test_node_selector(selector: dict[str, str], expected: bool) -> None:
    assert admits(ZONED, on(**selector)) is expected


def test_selector_and_affinity_must_both_match() -> None:
    term = (needs("cores", "Exists"),)
    assert admits(ZONED, on(term, zone="a"))
    assert not admits(ZONED, on(term, zone="b"))
    assert not admits(ZONED, on((needs("cores", "DoesNotExist"),), zone="a"))


@pytest.mark.parametrize(
    ("repels", "toleration", "expected"),
    [
        pytest.param(taint("k"), None, False, id="NoSchedule repels"),
        pytest.param(taint("k", "NoExecute"), None, False, id="NoExecute repels"),
        pytest.param(taint("k", "PreferNoSchedule"), None, True, id="PreferNoSchedule only weighs"),
        pytest.param(taint("k"), tolerates("k"), True, id="Exists, any effect"),
        pytest.param(taint("k"), tolerates("k", "NoSchedule"), True, id="same effect"),
        pytest.param(taint("k"), tolerates("k", "NoExecute"), False, id="other effect"),
        pytest.param(taint("k"), tolerates("other"), False, id="other key"),
        pytest.param(taint("k"), tolerates(), True, id="no key and Exists tolerates everything"),
        pytest.param(taint("k", value="v"), tolerates("k", value="v"), True, id="Equal"),
        pytest.param(taint("k", value="v"), tolerates("k", value="w"), False, id="other value"),
        pytest.param(
            taint("k", value="v"), Toleration("k", "", "v", ""), True, id="no operator is Equal"
        ),
        pytest.param(taint("k"), Toleration("k", "Equal", "", ""), True, id="equal empty values"),
        pytest.param(taint("k"), Toleration("k", "Gt", "", ""), False, id="unknown operator"),
    ],
)
def test_taints(repels: object, toleration: Toleration | None, expected: bool) -> None:
    tainted = node(taints=[repels])  # type: ignore[list-item]
    where = on(tolerating=[toleration] if toleration else [])

    assert admits(tainted, where) is expected


def test_every_repelling_taint_has_to_be_tolerated() -> None:
    tainted = node(taints=[taint("a"), taint("b", "NoExecute")])

    assert not admits(tainted, on(tolerating=[tolerates("a")]))
    assert admits(tainted, on(tolerating=[tolerates("a"), tolerates("b")]))


UNSCHEDULABLE = tolerates("node.kubernetes.io/unschedulable", "NoSchedule")
NOT_READY = tolerates("node.kubernetes.io/not-ready")


@pytest.mark.parametrize(
    ("at", "where", "expected"),
    [
        pytest.param(node(cordoned=True), on(), False, id="cordoned"),
        pytest.param(node(cordoned=True), on(tolerating=[UNSCHEDULABLE]), True, id="tolerated"),
        pytest.param(node(ready=False), on(), False, id="not ready"),
        pytest.param(node(ready=False), on(tolerating=[NOT_READY]), False, id="never if not ready"),
        pytest.param(node(ready=False), on(tolerating=[tolerates()]), False, id="not even then"),
        pytest.param(node("n1"), on(node_name="n1"), True, id="named"),
        pytest.param(node("n1"), on(node_name="n2"), False, id="another is named"),
        pytest.param(node("n1", taints=[taint("k")]), on(node_name="n1"), False, id="tainted"),
    ],
)
def test_state_and_name_of_the_node(at: Node, where: Constraint, expected: bool) -> None:
    assert admits(at, where) is expected


def test_in_service_is_ready_and_not_cordoned_whatever_the_taints() -> None:
    assert in_service(node(taints=[taint("k")]))
    assert not in_service(node(ready=False))
    assert not in_service(node(cordoned=True))
