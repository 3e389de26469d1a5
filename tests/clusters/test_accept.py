"""What may be observed of hubs and members, and what breaks which rule."""

from __future__ import annotations

import pytest

from tests.clusters.accept import Event, Seen, accepts


def on(cluster: str, uid: str, *kinds: Seen, **more: str) -> list[Event]:
    return [Event(kind, cluster, uid, **more) for kind in kinds]  # type: ignore[arg-type]


def recorded(number: int, cluster: str, uid: str, **more: str) -> list[Event]:
    return [Event(Seen.RECORDED, cluster, uid, number, **more)]  # type: ignore[arg-type]


def granted(number: int, cluster: str, uid: str) -> list[Event]:
    """A copy up to its grant."""
    offered = on(cluster, uid, Seen.OFFERED)
    return [*offered, *recorded(number, cluster, uid), *on(cluster, uid, Seen.GRANTED)]


WEST = granted(1, "west", "u1")
BEGUN = [*WEST, *on("west", "u1", Seen.BEGUN)]
ENDED = [*BEGUN, *on("west", "u1", Seen.ENDED)]
OUTCOME = on("west", "u1", Seen.OUTCOME)
LEFT = on("west", "u1", Seen.UNFINALIZED, Seen.GONE)
TAKEN_BACK = on("west", "u1", Seen.TAKEN_BACK, Seen.RELEASED)
EAST = [*granted(2, "east", "u2"), *on("east", "u2", Seen.BEGUN)]
EAST_ENDS = on("east", "u2", Seen.ENDED, Seen.OUTCOME)
LEADER = [Event(Seen.LEADER, leader="new")]
DELETED = [Event(Seen.DELETED)]
RESTORED = [Event(Seen.RESTORED), *LEADER]

GOOD = {
    "it runs and ends": [*ENDED, *OUTCOME],
    "and is deleted after that": [
        *ENDED,
        *OUTCOME,
        *DELETED,
        *on("west", "u1", Seen.REVOKED),
        *LEFT,
    ],
    "withdrawn, then run elsewhere": [
        *WEST,
        *on("west", "u1", Seen.WITHDRAWN),
        *LEFT,
        *EAST,
        *EAST_ENDS,
    ],
    "recorded while the last copy is deleted and released": [
        *BEGUN,
        *on("west", "u1", Seen.REVOKED),
        *TAKEN_BACK,
        *EAST,
        *LEFT,
        *EAST_ENDS,
    ],
    "a late create is a stray, and is withdrawn": [
        *BEGUN,
        *on("east", "u2", Seen.OFFERED, Seen.WITHDRAWN, Seen.UNFINALIZED, Seen.GONE),
        *on("west", "u1", Seen.ENDED),
        *OUTCOME,
    ],
    "tried again in its member": [
        *BEGUN,
        *TAKEN_BACK,
        *on("west", "u1", Seen.BEGUN, Seen.ENDED),
        *OUTCOME,
    ],
    "a user deletes the copy": [
        *BEGUN,
        *on("west", "u1", Seen.COPY_DELETED),
        *TAKEN_BACK,
        *LEFT,
        *EAST,
        *EAST_ENDS,
    ],
    "an intent on a deleted copy starts nothing": [
        *WEST,
        *on("west", "u1", Seen.WITHDRAWN, Seen.BEGUN),
        *EAST,
        *on("west", "u1", Seen.RELEASED),
        *LEFT,
        *EAST_ENDS,
    ],
    "a restored hub adopts": [
        *BEGUN,
        *RESTORED,
        *recorded(1, "west", "u1", leader="new"),
        *on("west", "u1", Seen.ENDED),
        *OUTCOME,
    ],
    "a fenced cluster": [*BEGUN, *on("west", "", Seen.DIED, Seen.FENCED), *EAST, *EAST_ENDS],
    "a tool creates a copy again, which is held and withdrawn": [
        *on("east", "u9", Seen.RECREATED, Seen.RESUMED),
        *ENDED,
        *OUTCOME,
        *on("east", "u9", Seen.WITHDRAWN, Seen.UNFINALIZED, Seen.GONE),
    ],
    "deleted on the hub": [*BEGUN, *DELETED, *on("west", "u1", Seen.REVOKED), *TAKEN_BACK, *LEFT],
}

LEASES = [Event(Seen.LEASE, "west"), Event(Seen.LEASE, "east")]
CLONE = [*LEASES, Event(Seen.CLONED, hub="two")]
BAD = {
    "M1: created ready to run": [Event(Seen.OFFERED, "west", "u1", is_suspended=False)],
    "M2: granted without a record": on("west", "u1", Seen.OFFERED, Seen.GRANTED),
    "M2: two leaders write one number": [
        *on("west", "u1", Seen.OFFERED),
        *on("east", "u2", Seen.OFFERED),
        *recorded(1, "west", "u1"),
        *recorded(1, "east", "u2"),
    ],
    "M3: another copy of that name is granted": [
        *on("west", "u1", Seen.OFFERED),
        *recorded(1, "west", "u1"),
        *on("west", "u1", Seen.WITHDRAWN, Seen.UNFINALIZED, Seen.GONE),
        *on("west", "u3", Seen.OFFERED, Seen.GRANTED),
    ],
    "M4: begun without a grant": on("west", "u1", Seen.OFFERED, Seen.RESUMED, Seen.BEGUN),
    "M5: withdrawn after it has begun": [*BEGUN, *on("west", "u1", Seen.WITHDRAWN)],
    "M5: withdrawn by an old version": [
        *on("west", "u1", Seen.OFFERED, version="7"),
        *recorded(1, "west", "u1"),
        *on("west", "u1", Seen.GRANTED, version="8"),
        *on("west", "u1", Seen.WITHDRAWN, version="7"),
    ],
    "M5: revoked before it is granted": on("west", "u1", Seen.OFFERED, Seen.REVOKED),
    "M6: the next record while the last copy runs": [*BEGUN, *granted(2, "east", "u2")[:2]],
    "M6: the next record while a deleted copy runs": [
        *BEGUN,
        *on("west", "u1", Seen.REVOKED, Seen.TAKEN_BACK),
        *granted(2, "east", "u2")[:2],
    ],
    "M7: gone while it has a finalizer": [*WEST, *on("west", "u1", Seen.WITHDRAWN, Seen.GONE)],
    "M7: the finalizer goes while it runs": [
        *BEGUN,
        *on("west", "u1", Seen.REVOKED, Seen.UNFINALIZED),
    ],
    "M8: an ended copy goes before its AppWrapper": [*ENDED, *OUTCOME, *LEFT[:1]],
    "M8: an outcome before the end": [*BEGUN, *OUTCOME],
    "M8: an outcome twice": [*ENDED, *OUTCOME, *OUTCOME],
    "M8: begun again after its end": [
        *ENDED,
        *on("west", "", Seen.FENCED),
        *granted(2, "east", "u2"),
        *on("east", "u2", Seen.BEGUN),
    ],
    "M9: a restored hub revokes what runs": [
        *BEGUN,
        *RESTORED,
        *on("west", "u1", Seen.REVOKED, leader="new"),
    ],
    "M10: a restored hub records another copy": [
        *BEGUN,
        *RESTORED,
        *on("east", "u2", Seen.OFFERED, leader="new"),
        *recorded(1, "east", "u2", leader="new"),
    ],
    "M11: a second hub without the Lease": [*CLONE, *on("west", "u1", Seen.OFFERED, hub="two")],
    "M11: a second hub with one Lease of two": [
        *CLONE,
        Event(Seen.LEASE, "west", hub="two"),
        *on("west", "u1", Seen.OFFERED, hub="two"),
        *recorded(1, "west", "u1", hub="two"),
    ],
    "trace: a uid twice": [*WEST, *on("east", "u1", Seen.OFFERED)],
}

UNFINISHED = {
    "M12": [*BEGUN, *DELETED, *on("west", "u1", Seen.REVOKED)],
    "M8": [*on("west", "u1", Seen.OFFERED, Seen.WITHDRAWN, Seen.UNFINALIZED, Seen.GONE)],
    "M9": [*ENDED, *OUTCOME, *on("east", "u2", Seen.OFFERED)],
}


@pytest.mark.parametrize("name", GOOD)
def test_accepted(name: str) -> None:
    assert str(accepts(GOOD[name], is_over=True)) == "allowed"


@pytest.mark.parametrize("name", BAD)
def test_refused_by_its_rule_at_its_last_event(name: str) -> None:
    verdict = accepts(BAD[name])

    assert not verdict.is_allowed
    assert verdict.rule == name.partition(":")[0], verdict
    assert verdict.number == len(BAD[name]), verdict


@pytest.mark.parametrize("rule", UNFINISHED)
def test_what_is_left_at_the_end(rule: str) -> None:
    assert accepts(UNFINISHED[rule]).is_allowed
    assert accepts(UNFINISHED[rule], is_over=True).rule == rule


def test_a_verdict_names_event_rule_and_reason() -> None:
    verdict = accepts(BAD["M6: the next record while the last copy runs"])

    assert str(verdict) == "event 6, recorded u2 east: M6: u1 in west is not dead"
