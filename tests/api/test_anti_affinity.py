"""Required anti-affinity by hostname, from manifest to verdict, as kube-scheduler reads it: a pod
that is there keeps off what its terms select, and what has terms that select it."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest

from mcad.core.state.model import PodSet
from mcad.core.state.not_checked import OTHERS_PODS
from mcad.core.state.records import replace
from tests import budget
from tests.api.builders import Map, accepted, container, generic, obj, template, v1beta1, v1beta2
from tests.core.builders import cluster, fits, hold, node

HOST = "kubernetes.io/hostname"
APPS = budget.draw(range(6_000), 300, "AppWrappers with anti-affinity over sets")


def off(*selectors: Map, **more: Any) -> Map:
    """Required terms of a pod, one for each selector."""
    terms = [{"topologyKey": HOST, "labelSelector": one, **more} for one in selectors]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def app(name: str) -> Map:
    return {"matchLabels": {"app": name}}


def deployment(
    name: str, replicas: int, cpu: str, labels: Map | None, affinity: Map | None, **spec: Any
) -> Map:
    made = template(container(cpu), labels=labels, **spec)
    made["spec"] |= {"affinity": affinity} if affinity else {}
    return obj("apps/v1", "Deployment", name, {"replicas": replicas, "template": made})


def sets_of(*things: Map) -> tuple[PodSet, ...]:
    return accepted(v1beta1(*things)).workload.sets


def unmodelled(*things: Map) -> list[tuple[str, ...]]:
    return [one.unmodelled for one in sets_of(*things)]


def nodes_needed(*things: Map) -> int:
    """How many nodes of 8 CPUs it takes until the AppWrapper fits; 9 if more than eight."""
    sets = sets_of(*things)
    counts = (n for n in range(9) if fits(cluster(*(node(f"n{i}", "8") for i in range(n))), *sets))
    return next(counts, 9)


LEFT, RIGHT = {"app": "left"}, {"app": "right"}
BOTH = {"app": "x"}
NO_APP = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
CASES = {
    "each from itself": (
        [("1", LEFT, off(app("left"))), ("1", RIGHT, off(app("right")))],
        2,
    ),
    "with one label, different requests": (
        [("1", BOTH, off(app("x"))), ("2", BOTH, off(app("x")))],
        4,
    ),
    "with one label, equal requests": (
        [("1", BOTH, off(app("x"))), ("1", BOTH, off(app("x")))],
        4,
    ),
    "one from the other": ([("1", LEFT, off(app("right"))), ("1", RIGHT, None)], 2),
    "each from the other": (
        [("1", LEFT, off(app("right"))), ("1", RIGHT, off(app("left")))],
        2,
    ),
    "one from itself and the other": (
        [("1", LEFT, off(app("left"), app("right"))), ("1", RIGHT, None)],
        3,
    ),
    "one from both by one term, which it has alone": (
        [("1", BOTH, off(app("x"))), ("1", BOTH, None)],
        3,
    ),
    "none from another": ([("1", LEFT, off(app("other"))), ("1", RIGHT, None)], 1),
    "from what has no label": (
        [("1", LEFT, off(NO_APP)), ("1", None, None)],
        2,
    ),
}


@pytest.mark.parametrize(("sets", "nodes"), CASES.values(), ids=CASES.keys())
def test_two_deployments_of_two_pods_need_so_many_nodes(
    sets: list[tuple[str, Map | None, Map | None]], nodes: int
) -> None:
    things = [deployment(f"d{n}", 2, *one) for n, one in enumerate(sets)]
    assert nodes_needed(*things) == nodes
    assert nodes_needed(*things[::-1]) == nodes


NAMED, OTHERS = ("podAntiAffinity",), (OTHERS_PODS,)


def test_a_term_may_select_pods_outside_the_appwrapper_whatever_it_selects_inside() -> None:
    one = deployment("a", 1, "1", LEFT, off(app("other")))
    assert unmodelled(one, deployment("b", 1, "1", RIGHT, None)) == [OTHERS, ()]
    assert unmodelled(one, deployment("b", 1, "1", {"app": "other"}, None)) == [OTHERS, ()]
    revision = off(app("left"), matchLabelKeys=["pod-template-hash"])
    assert unmodelled(deployment("a", 1, "1", LEFT, revision)) == [()]


def test_a_term_of_another_topology_is_named_beside_one_that_is_modelled() -> None:
    affinity = off(app("left"))
    terms = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms.append({"topologyKey": "zone", "labelSelector": app("left")})
    made = deployment("a", 2, "1", LEFT, affinity)
    assert (nodes_needed(made), unmodelled(made)) == (2, [NAMED + OTHERS])


def test_a_term_that_concerns_a_daemon_set_and_others_is_named() -> None:
    daemons = obj("apps/v1", "DaemonSet", "d", {"template": template(labels=RIGHT)})
    other = deployment("a", 1, "1", LEFT, off(app("right")))
    assert unmodelled(other, daemons) == [OTHERS + NAMED, ()]
    daemons["spec"]["template"]["spec"]["affinity"] = off(app("left"))
    assert unmodelled(deployment("a", 1, "1", LEFT, None), daemons) == [(), OTHERS + NAMED]
    daemons["spec"]["template"]["spec"]["affinity"] = off(app("right"))
    assert unmodelled(deployment("a", 1, "1", LEFT, None), daemons) == [(), OTHERS]


def test_a_term_of_one_revision_concerns_its_own_set() -> None:
    """As ``pod-template-hash``, which two Deployments never share."""
    affinity = off(app("x"), matchLabelKeys=["pod-template-hash"])
    things = [deployment(name, 2, "1", BOTH, affinity) for name in "ab"]
    assert nodes_needed(*things) == 2


@pytest.mark.parametrize(
    ("keys", "nodes"),
    [
        ({"matchLabelKeys": ["tier"]}, 4),
        ({"matchLabelKeys": ["app"]}, 2),
        ({"matchLabelKeys": ["app", "tier"]}, 2),
        ({"mismatchLabelKeys": ["app"]}, 2),
        ({"mismatchLabelKeys": ["tier"]}, 1),
        ({"mismatchLabelKeys": ["none"]}, 1),
    ],
)
def test_keys_select_by_the_values_of_the_pod(keys: dict[str, list[str]], nodes: int) -> None:
    """Two pods of each of two Deployments in one tier. Of a key that a pod lacks nothing is known:
    then the term is named."""
    things = [
        deployment(name, 2, "1", {"app": name, "tier": "x"}, off({}, **keys) if own else None)
        for name, own in (("a", True), ("b", keys.get("matchLabelKeys") == ["tier"]))
    ]
    assert nodes_needed(*things) == nodes


def test_declared_pods_have_the_terms_of_the_template() -> None:
    """Two entries stand for the pods of one Deployment, which excludes itself."""
    entries = [{"replicas": 2, "requests": {"cpu": cpu}} for cpu in ("1", "2")]
    made = generic(deployment("a", 4, "1", LEFT, off(app("left"))), custompodresources=entries)
    assert nodes_needed(made) == 4


def test_terms_are_named_where_templates_of_declared_pods_differ() -> None:
    roles = {
        role: {"replicas": 1, "template": template(labels=labels, affinity=off(app("left")))}
        for role, labels in (("Master", LEFT), ("Worker", RIGHT))
    }
    made = obj("kubeflow.org/v1", "PyTorchJob", "job", {"pytorchReplicaSpecs": roles})
    entries = [{"replicas": 3, "requests": {"cpu": "1"}}]
    assert unmodelled(generic(made, custompodresources=entries)) == [OTHERS + NAMED]


def test_pod_sets_have_the_terms_of_the_templates_at_their_paths() -> None:
    things = [deployment(name, 2, "1", BOTH, off(app("x"))) for name in "ab"]
    path = "template.spec.template"
    parts = [{"template": one, "podSets": [{"path": path, "replicas": 1}]} for one in things]
    sets = accepted(v1beta2(*parts)).workload.sets
    assert [fits(cluster(*(node(f"n{i}") for i in range(n))), *sets) for n in (1, 2)] == [
        False,
        True,
    ]


def test_appwrappers_that_differ_in_names_only_have_one_shape() -> None:
    shapes = {
        tuple(
            replace(each, path="")
            for each in sets_of(
                deployment("a", 2, "1", {"app": name}, off(app(name))),
                deployment("b", 2, "1", {"app": name}, off(app(name))),
            )
        )
        for name in ("x", "y")
    }
    assert len(shapes) == 1


# -- random AppWrappers against brute force --------------------------------------------------------


class App(NamedTuple):
    """A Deployment: pods with labels, and the label selectors of their terms."""

    replicas: int
    cpu: int
    labels: dict[str, str]
    selectors: tuple[Map, ...]


def draw_apps(rng: Random) -> list[App]:
    """Up to three, with labels and selectors of which some are of several Deployments, some of one
    and some of none."""
    labels = [{}, LEFT, RIGHT, {**LEFT, "tier": "a"}, {**RIGHT, "tier": "a"}]
    selectors = [
        app("left"),
        app("right"),
        {"matchLabels": {"tier": "a"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["left", "right"]}]},
        {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
        app("other"),
        {},
    ]
    return [
        App(
            rng.randint(1, 3),
            rng.choice([1, 1, 2]),
            rng.choice(labels),
            tuple(rng.sample(selectors, rng.choice([0, 1, 1, 1, 2]))),
        )
        for _ in range(rng.randint(1, 3))
    ]


def _has(labels: dict[str, str], selector: Map) -> bool:
    """The operators that are drawn, and no others."""
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.get("matchExpressions", []):
        if one["operator"] == "In" and labels.get(one["key"]) not in one["values"]:
            return False
        if one["operator"] == "DoesNotExist" and one["key"] in labels:
            return False
    return True


def _may_share(one: App, other: App) -> bool:
    return not any(
        _has(selected.labels, selector)
        for holder, selected in ((one, other), (other, one))
        for selector in holder.selectors
    )


def _bind(free: list[int], there: list[list[App]], left: list[App]) -> bool:
    """Whether all pods find nodes, by trying every way, one pod at a time."""
    if not left:
        return True
    one, tried = left[0], set()
    for at, cpus in enumerate(free):
        state = (cpus, tuple(sorted(map(id, there[at]))))
        if state in tried or cpus < one.cpu or not all(_may_share(one, each) for each in there[at]):
            continue
        tried.add(state)
        free[at] -= one.cpu
        there[at].append(one)
        found = _bind(free, there, left[1:])
        free[at] += one.cpu
        there[at].pop()
        if found:
            return True
    return False


@pytest.mark.parametrize("seed", APPS)
def test_it_fits_if_and_only_if_its_pods_find_nodes(seed: int) -> None:
    rng = Random(seed)
    apps = draw_apps(rng)
    cpus = [rng.randint(1, 4) for _ in range(rng.randint(1, 5))]
    things = [
        deployment(f"d{n}", one.replicas, str(one.cpu), one.labels, off(*one.selectors))
        for n, one in enumerate(apps)
    ]
    sets = sets_of(*things)
    pods = [one for one in apps for _ in range(one.replicas)]
    capacity = cluster(*(node(f"n{n}", str(cpu)) for n, cpu in enumerate(cpus)))
    expected = _bind(cpus, [[] for _ in cpus], pods)
    assert fits(capacity, *sets) is expected
    if expected:
        hold(capacity, "w", *sets)
        for counts in capacity.gangs.places_of("w").values():
            here = [one for one, n in zip(apps, counts, strict=True) for _ in range(n)]
            assert all(_may_share(a, b) for n, a in enumerate(here) for b in here[:n]), here
