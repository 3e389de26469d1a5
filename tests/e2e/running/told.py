"""What people are told of an AppWrapper that stands still: the names, all in one place."""

from __future__ import annotations

from enum import StrEnum

from tests.e2e.process import mcad
from tests.e2e.running.case import Case, Json

SOON = 10
"""Seconds within which everything is told that is no matter of seconds."""

STALLED = "Stalled"
"""The type of the condition."""


class Why(StrEnum):
    """Its reasons; the Event has the same."""

    IMAGE = "ImagePullFailed"
    CONTAINER = "ContainerCannotStart"
    CRASH = "CrashLoop"
    REFUSED = "PodsRefused"
    SUSPENDED = "ItemSuspended"
    PODS_REMAIN = "PodsRemain"
    UNSCHEDULABLE = "PodsUnschedulable"
    GATED = "SchedulingGated"


PASSING = (Why.UNSCHEDULABLE, Why.GATED)
"""These usually end within 10 s, and are told after that."""


def stalled(case: Case) -> Json:
    """The condition, {} unless it is True."""
    found = case.conditions().get(STALLED, {})
    return found if found.get("status") == "True" else {}


def assert_told(case: Case, why: Why, *words: str) -> None:
    """Condition, Event, both pages of the CLI and kubectl say why it stands still, in these words,
    which are kubelet's, kube-scheduler's or a controller's own."""
    patience = 2 * SOON if why in PASSING else SOON
    try:
        found = case.plane.wait_for(lambda: _stalled_by(case, why), patience)
    except TimeoutError as error:
        raise AssertionError(f"{case.pool}: not {STALLED} {why}: {_shown(case)}") from error
    for word in words:
        assert word in found["message"], f"{word!r} missing in {found}"
    events = case.plane.wait_for(lambda: case.events(why), SOON, f"{case.pool}: an Event {why}")
    assert len(events) == 1, events
    shown = pages(case)
    for page in (events[0]["message"], *shown):
        for word in words:
            assert _folded(word) in _folded(page), f"{word!r} missing in\n{page}"
    assert why in shown[-1], f"{why} missing in\n{shown[-1]}"


def pages(case: Case) -> list[str]:
    """What a person reads: ``mcad describe``, ``mcad why`` and ``kubectl describe``."""
    name = f"{case.pool}/{case.name}"
    described = mcad("describe", name, kubeconfig=case.plane.admin_kubeconfig)
    asked = ("--server", case.server) if case.server else ()
    why = mcad("why", name, *asked, kubeconfig=None if asked else case.plane.admin_kubeconfig)
    shown = case.plane.kubectl("describe", "appwrapper", case.name, "-n", case.pool)
    return [described, why, shown]


def assert_not_stalled(case: Case) -> None:
    """It goes on, and nothing says otherwise any more; told with the next pod counts."""
    case.plane.wait_for(lambda: not stalled(case), 6 * SOON, f"{case.pool}: it is not {STALLED}")


def pods_ready(case: Case) -> str:
    """The status of the condition PodsReady, "" without one."""
    found: str = case.conditions().get("PodsReady", {}).get("status", "")
    return found


def _stalled_by(case: Case, why: Why) -> Json:
    found = stalled(case)
    return found if found.get("reason") == why else {}


def _shown(case: Case) -> str:
    found = case.conditions().values()
    return f"{case.state()}, {[(one['type'], one['status'], one.get('reason')) for one in found]}"


def _folded(text: str) -> str:
    return " ".join(text.split())
