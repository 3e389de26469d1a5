"""What each rule is for: what happens without it, and in which world."""

from __future__ import annotations

from typing import NamedTuple

from tests.clusters.explore import search
from tests.clusters.model import ALL, RUNNING, Kind, Model, Rules, State, Step, World


class Case(NamedTuple):
    """Rules that are off, and the shortest harm."""

    off: tuple[str, ...]
    world: World
    steps: int
    refused_by: str  # the rule that ``accept`` names for the trace
    is_quick: bool = True  # found within two seconds

    @property
    def rules(self) -> Rules:
        return ALL._replace(**dict.fromkeys(self.off, False))

    def __str__(self) -> str:
        return " and ".join(self.off)


LATE = World(leaders=2)
CLONES = World(leaders=2, clones=True)
RESTORES = World(restores=1)
USERS = World(deletes_copies=True)

HARMS = (
    Case(("m1_suspended", "m4_own_grant"), World(), 5, "M1"),
    Case(("m2_record_first",), World(), 9, "M2"),
    Case(("m2_fenced",), LATE, 13, "M2"),
    Case(("m2_proven",), World(), 13, "M6"),
    Case(("m3_uid",), LATE, 18, "M3", is_quick=False),
    Case(("m4_own_grant",), World(resumes_copies=True), 7, "M4"),
    Case(("m4_own_grant",), World(recreates=1), 9, "M4"),
    Case(("m6_read_after",), LATE, 15, "M6"),
    Case(("m7_finalizer",), USERS, 14, "M7"),
    Case(("m7_no_attempt",), World(), 17, "M7"),
    Case(("m8_outcome_first",), World(), 16, "M8"),
    Case(("m8_kept",), RESTORES, 25, "M8"),
    Case(("m10_all_listed",), RESTORES, 17, "M10"),
    Case(("m11_lease",), CLONES, 16, "M11", is_quick=False),
    Case(("m11_every_lease",), CLONES, 18, "M11", is_quick=False),
)
"""Two are alive, or it runs again after it has ended. Steps are counted with reads."""

WASTES = (
    Case(("m5_version",), World(), 0, "M5"),
    Case(("m9_adopted",), RESTORES, 0, "M9"),
    Case(("m9_live_read",), LATE, 0, ""),
)
"""Nothing is harmed, but running attempts are deleted for no reason: ``is_waste``."""

ENDLESS = (Case(("m12_taken_back",), USERS, 0, "M12"),)
"""An ending is out of reach."""

GAPS = {
    "a restore shows only by granted copies, and a member is unreachable": (
        World(restores=1, unnoticed=True)
    ),
    "a fenced cluster comes back, and goes on where it was": World(dies=True, returns=True),
}
"""What all rules together do not cover: a person has to."""

SMALL = {
    "no accident": World(),
    "users delete copies": USERS,
    "the AppWrapper is deleted": World(deletes=True),
    "a cluster dies": World(dies=True),
    "a restore": RESTORES,
    "users and tools": World(deletes_copies=True, resumes_copies=True, recreates=1, deletes=True),
}
"""Worlds with one leader: every state is looked at, and that an ending is in reach."""

LARGE = {
    "late and repeated requests": LATE,
    "and users delete copies": LATE._replace(deletes_copies=True),
    "and the AppWrapper is deleted": LATE._replace(deletes=True),
    "and a cluster dies": LATE._replace(dies=True),
    "and users and tools": LATE._replace(resumes_copies=True, recreates=1),
    "and a restore": LATE._replace(restores=1),
    "two hubs": CLONES,
}
"""Worlds with two leaders: every state up to a depth."""

EVERYTHING = World(
    leaders=3, deletes_copies=True, resumes_copies=True, recreates=99, deletes=True, restores=99
)
DRAWN = {
    "everything": EVERYTHING,
    "everything, and a cluster dies": EVERYTHING._replace(dies=True),
    "two hubs": CLONES._replace(deletes_copies=True, resumes_copies=True, recreates=99),
}
"""Worlds of histories that are drawn."""


def is_waste(before: State, step: Step) -> bool:
    """Whether a hub deletes an attempt that it does not know to run."""
    if step.kind not in (Kind.WITHDRAW, Kind.REVOKE):
        return False
    copy, hub = before.copies[step.cluster], before.leaders[step.leader].hub
    is_known = step.kind is Kind.REVOKE and (hub.cluster, hub.uid) == (step.cluster, copy.uid)
    return copy.attempt is RUNNING and not is_known


def wasted(rules: Rules, world: World) -> int:
    """How many such steps there are; up to 13 steps from the start."""
    found = 0

    def count(before: State, step: Step) -> None:
        nonlocal found
        found += is_waste(before, step)

    search(Model(rules, world), depth=13, count=count)
    return found
