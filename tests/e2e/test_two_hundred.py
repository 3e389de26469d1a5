"""Two hundred AppWrappers that fit: four writes each, in order, and not one read for any of them.

Counted by the API server, whose audit log knows the dispatcher by its ServiceAccount.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.audit import AuditEntry
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import LONG, events, is_check, reads, wait_until_quiet, watches, writes
from tests.e2e.process import Dispatcher, counts_every
from tests.e2e.support import appwrappers, appwrappers_path, create, get, in_state, state
from tests.manifests import generic, pod

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

COUNT = 200
SLOT = "example.com/slot"
REST_SECONDS = 10.0

START = {
    ("list", "nodes"): 2,
    ("list", "pods"): 2,
    ("list", "appwrappers"): 2,
    ("list", "customresourcedefinitions"): 1,
}
"""``mcad run`` looks once whether it may read the first three, and lists all of them once."""
PREFLIGHT = {
    ("get", "customresourcedefinitions"): 1,
    ("list", "mutatingwebhookconfigurations"): 1,
    ("list", "validatingwebhookconfigurations"): 1,
}
"""Is our CRD the right one, and does another controller work on AppWrappers? Never watched."""


@pytest.fixture(scope="module")
def roomy(control_plane: ControlPlane) -> ControlPlane:
    """Room for twice as many pods, and for ten that want a slot."""
    for number in range(5):
        control_plane.add_node(f"node-{number}", cpu="32", memory="64Gi", wait=False)
    control_plane.add_node("slots", cpu="8", memory="64Gi", extended={SLOT: "10"}, wait=False)
    control_plane.wait_for_nodes([*(f"node-{number}" for number in range(5)), "slots"])
    return control_plane


UNCOUNTED_S = 3600
"""What a dispatch costs; the counts of pods that come with time are a test of their own."""


@pytest.fixture
def dispatcher(roomy: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    """A running dispatcher."""
    with Dispatcher(roomy, account, **counts_every(UNCOUNTED_S)) as running:
        yield running


def names(prefix: str, count: int = COUNT) -> list[str]:
    return [f"{prefix}-{number:03d}" for number in range(count)]


def wait_until_running(plane: ControlPlane, wanted: list[str]) -> None:
    # A list of hundreds is dear, so the last one is asked for first.
    plane.wait_for(lambda: state(get(plane, wanted[-1])) == "Running", LONG, wanted[-1])
    plane.wait_for(
        lambda: set(wanted) <= in_state(plane, "Running"), LONG, f"{len(wanted)} AppWrappers run"
    )


def wait_until_placed(plane: ControlPlane, wanted: list[str]) -> None:
    """Until it is on record that their pods have had nodes, which may come ten seconds later."""

    def are_placed() -> bool:
        found = appwrappers(plane)
        return all(found[name]["status"]["dispatch"].get("placedTime") for name in wanted)

    plane.wait_for(are_placed, LONG, f"{len(wanted)} AppWrappers are placed")


def check_writes(entries: list[AuditEntry], wanted: list[str], tell: str) -> None:
    """Intent, pod, confirmation, placement; nothing else, and nothing refused."""
    made = writes(entries)
    found = Counter((one.verb, one.resource, one.subresource, one.name, one.code) for one in made)
    expected: Counter[tuple[str, str, str, str, int]] = Counter()
    for name in wanted:
        expected["update", "appwrappers", "status", name, 200] = 3
        expected["create", "pods", "", name, 201] = 1
    told, read = len(events(entries)), reads(entries).total()
    print(f"{tell}: {len(made)} writes, {told} Events, {read} reads, {watches(entries)}")
    assert found == expected
    assert told <= len(wanted)


def check_order(plane: ControlPlane, wanted: list[str]) -> None:
    """First seen strictly in the order of creation, and decided on in no other."""
    found = appwrappers(plane)
    seen = [found[name]["status"]["controllerfirsttimestamp"] for name in wanted]
    assert seen == sorted(set(seen))
    intents = [found[name]["status"]["dispatch"]["intentTime"] for name in wanted]
    assert intents == sorted(intents)
    assert {found[name]["status"]["dispatch"]["attempt"] for name in wanted} == {1}


def start_of(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Without the checks of watches. A start asks for one object of some kinds in the same way."""
    found = []
    asked: set[str] = set()
    for one in entries:
        if is_check(one) and (one.resource in asked or START.get(("list", one.resource), 1) == 1):
            continue
        asked |= {one.resource} if is_check(one) else set()
        found.append(one)
    return found


def test_created_before_the_dispatcher_starts(roomy: ControlPlane, account: Path) -> None:
    """What a start reads does not depend on how much there is to do."""
    plane, wanted = roomy, names("early")
    mark = plane.audit_mark()
    with Dispatcher(plane, account, **counts_every(UNCOUNTED_S)):
        wait_until_quiet(plane)
        idle = start_of(plane.audit(mark))
    assert writes(idle) == events(idle) == []

    create(plane, *(generic(name, pod(name)) for name in wanted))
    mark = plane.audit_mark()
    with Dispatcher(plane, account, **counts_every(UNCOUNTED_S)):
        wait_until_running(plane, wanted)
        wait_until_placed(plane, wanted)
        wait_until_quiet(plane)
        busy = start_of(plane.audit(mark))

    check_writes(busy, wanted, "created before the start")
    check_order(plane, wanted)
    found = reads(busy)
    found.pop(("list", "events"), 0)  # about pods that a busy machine starts late
    assert found == reads(idle)
    assert reads(idle).items() >= (START | PREFLIGHT).items()
    kinds = {what: count for what, count in reads(idle).items() if what not in PREFLIGHT}
    assert {count for what, count in kinds.items() if what not in START} == {1}
    assert {verb for verb, _ in kinds} == {"list"}
    assert watches(busy).keys() == watches(idle).keys() == {what for _, what in kinds}
    assert watches(busy).total() - len(watches(busy)) < COUNT / 4


def test_created_while_it_runs(roomy: ControlPlane, dispatcher: Dispatcher) -> None:
    plane, wanted = roomy, names("late")
    wait_until_quiet(plane)
    mark = plane.audit_mark()
    create(plane, *(generic(name, pod(name)) for name in wanted))
    wait_until_running(plane, wanted)
    wait_until_placed(plane, wanted)
    wait_until_quiet(plane)
    entries = plane.audit(mark)

    check_writes(entries, wanted, "created while it runs")
    check_order(plane, wanted)
    assert reads(one for one in entries if not is_check(one)) == Counter()
    assert watches(entries).total() < COUNT / 4


def test_at_rest_nothing_is_written(roomy: ControlPlane, dispatcher: Dispatcher) -> None:
    """Ten fit, the others wait in silence; room goes to the oldest of them."""
    plane, wanted = roomy, names("slot", 40)
    wait_until_quiet(plane)
    mark = plane.audit_mark()
    create(plane, *(generic(name, pod(name, extended={SLOT: "1"})) for name in wanted))
    wait_until_running(plane, wanted[:10])
    wait_until_placed(plane, wanted[:10])
    wait_until_quiet(plane)
    entries = plane.audit(mark)
    assert in_state(plane, "Running") & set(wanted) == set(wanted[:10])
    told = Counter(one.name for one in writes(entries) if one.subresource == "status")
    assert told == {name: 3 if name in wanted[:10] else 1 for name in wanted}
    assert len(events(entries)) <= len(wanted)

    mark = plane.audit_mark()
    time.sleep(REST_SECONDS)
    entries = plane.audit(mark)
    assert writes(entries) == events(entries) == []
    checks = [one for one in entries if is_check(one)]
    assert reads([one for one in entries if one not in checks]) == Counter()
    assert len(checks) <= REST_SECONDS, "of watches that told nothing (ADR 43)"

    for name in wanted[:5]:
        assert plane.request("DELETE", f"{appwrappers_path()}/{name}")[0] == 200
    wait_until_running(plane, wanted[5:15])
    wait_until_quiet(plane)
    assert in_state(plane, "Running") & set(wanted) == set(wanted[5:15])
    check_order(plane, wanted[5:15])


def test_pods_that_come_cost_a_write_and_none_at_rest(roomy: ControlPlane, account: Path) -> None:
    plane, wanted = roomy, names("counted", 20)
    with Dispatcher(plane, account, **counts_every(5)):
        wait_until_quiet(plane, 10)  # those that run already are told of now
        mark = plane.audit_mark()
        create(plane, *(generic(name, pod(name)) for name in wanted))
        wait_until_running(plane, wanted)
        wait_until_quiet(plane, 10)
        told = Counter(one.name for one in writes(plane.audit(mark)) if one.subresource == "status")
        assert told.keys() == set(wanted)
        assert set(told.values()) <= {3, 4}, "a pod may be pending when it is counted first"
        found = appwrappers(plane)
        assert {found[name]["status"]["running"] for name in wanted} == {1}

        mark = plane.audit_mark()
        time.sleep(REST_SECONDS)
        assert writes(plane.audit(mark)) == []
