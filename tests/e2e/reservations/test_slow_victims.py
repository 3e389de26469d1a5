"""Victims that take all of their grace period, and one that stays for longer than a reservation
does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import mcad
from tests.e2e.reservations.slots import (
    PATIENCE_S,
    PODS,
    PREEMPTION,
    dispatching,
    events,
    eviction,
    submit,
    until,
)
from tests.e2e.support import states, status_of
from tests.manifests import subtree

pytestmark = pytest.mark.controlplane

STAY = "example.com/stay"


def test_a_share_comes_back_from_pods_that_take_all_of_their_grace_period(
    plane: ControlPlane, account: Path
) -> None:
    """The reservation outlasts ``dispatchResourceReservationTimeout`` if the pods may: the room of
    the first one that ends is not for the next borrower."""
    trees = (subtree("root", "teams", root=4), subtree("teams", "teams", "root", red=2, blue=2))
    with dispatching(plane, account, "dispatchResourceReservationTimeout=1000"):
        plane.apply(trees)
        for number in range(6):
            grace = 62 + 6 * (number % 2)  # the reservation alone would last for a minute
            submit(plane, f"red-{number}", "1", team="red", linger=grace)
        plane.wait_for(lambda: list(states(plane).values()).count("Running") == 4, PATIENCE_S)
        submit(plane, "blue", "2", team="blue")
        plane.wait_for(lambda: states(plane)["blue"] == "Running", 2 * PATIENCE_S, "blue runs")
        evicted = [name for name in states(plane) if eviction(plane, name)[0]]
        assert len(evicted) == 2, "none was evicted in vain"
        plane.kubectl("delete", "appwrappers", "--all")
        plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


def hold(plane: ControlPlane, name: str, finalizers: list[str] | None) -> None:
    """Give a pod these finalizers, and take all others away."""
    body, merge = {"metadata": {"finalizers": finalizers}}, "application/merge-patch+json"
    assert plane.request("PATCH", f"{PODS}/{name}", body, content_type=merge)[0] == 200


def test_a_reservation_ends_if_a_victim_stays(plane: ControlPlane, account: Path) -> None:
    setting = "dispatchResourceReservationTimeout=8000"
    with dispatching(plane, account, PREEMPTION, setting) as dispatcher:
        submit(plane, "stuck", slots=4)
        until(plane, stuck="Running")
        hold(plane, "stuck", [STAY])
        submit(plane, "urgent", slots=4, priority=5)
        plane.wait_for(
            lambda: status_of(plane, "urgent").get("reservation"), PATIENCE_S, "a reservation"
        )
        reservation = status_of(plane, "urgent")["reservation"]
        assert (reservation["reason"], reservation["nodes"]) == ("Preempting", ["node-1"])
        assert reservation["waitsFor"] == ["default/stuck"]
        said = mcad("describe", "urgent", "--server", dispatcher.url)
        assert "Waits for:    default/stuck" in said
        assert "RoomReserved" in mcad("queue", "--server", dispatcher.url)
        submit(plane, "other", slots=1, priority=1)

        plane.wait_for(lambda: "ReservationEnded" in events(plane, "urgent"), PATIENCE_S, "its end")
        plane.wait_for(
            lambda: "reservation" not in status_of(plane, "urgent"), PATIENCE_S, "no reservation"
        )
        assert {name for name, state in states(plane).items() if state == "Running"} == set()
        hold(plane, "stuck", None)
        until(plane, stuck="Pending", urgent="Running", other="Pending")
        assert eviction(plane, "stuck") == (1, "Preempting", "default/urgent")
