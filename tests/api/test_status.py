"""The wire status: as MCAD's documents print it, complete as a patch, and readable again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.api.durations import YEAR_S
from mcad.api.labels import MAX_ATTEMPT
from mcad.api.located_fields import MAX_COUNT
from mcad.api.status import (
    CLOCK_SKEW,
    MAX_NAMES,
    STATUS,
    _fields,
    is_about,
    read_status,
    render_status,
)
from mcad.api.wire import format_instant, parse_instant
from mcad.core.state.bounds import AVOIDED_MAX
from mcad.core.state.model import (
    MAX_PRIORITY,
    AddedRequests,
    Condition,
    DispatchPhase,
    DispatchRecord,
    Item,
    KeptApart,
    Next,
    ObjectRef,
    Persisted,
    PodCounts,
    PodSet,
    PrioritySource,
    Unscheduled,
)
from mcad.core.state.reservation import Eviction, Reservation, ReservationReason
from mcad.core.state.status_view import StatusView
from mcad.core.state.units import SECOND
from tests.api.describe import describe, squeezed

START = 1_689_938_307_000_000  # 2023-07-21T11:18:27Z
UID = "0b1e"


def rendered(view: StatusView) -> Any:
    """The status of the AppWrapper with this uid."""
    return render_status(view, UID)


def true(kind: str, micros: int, reason: str = "", message: str = "") -> Condition:
    return Condition(kind, True, reason, message, START + micros, START + micros)


QUEUED = StatusView(
    state="Pending",
    queue_job_state="Backoff",
    can_run=False,
    sender="before [backoff] - Rejoining",
    first_seen=START + 82147,
    first_dispatch=0,
    system_priority=0,
    conditions=(
        true("Init", 82148),
        true("Queueing", 82164, "AwaitingHeadOfLine"),
        true("HeadOfLine", 86747, "FrontOfQueue."),
        true(
            "Backoff",
            93222,
            "AppWrapperNotRunnable.",
            "Insufficient resources to dispatch AppWrapper.",
        ),
    ),
    pods=PodCounts(),
    requeueings=0,
    requeueing_wait=0,
    observed_generation=1,
    phase="",
    dispatch=None,
)

BEGINNING = """\
  Conditions:
    Last Transition Micro Time:  2023-07-21T11:18:27.082148Z
    Last Update Micro Time:      2023-07-21T11:18:27.082148Z
    Status:                      True
    Type:                        Init
    Last Transition Micro Time:  2023-07-21T11:18:27.082164Z
    Last Update Micro Time:      2023-07-21T11:18:27.082164Z
    Reason:                      AwaitingHeadOfLine
    Status:                      True
    Type:                        Queueing
    Last Transition Micro Time:  2023-07-21T11:18:27.086747Z
    Last Update Micro Time:      2023-07-21T11:18:27.086747Z
    Reason:                      FrontOfQueue.
    Status:                      True
    Type:                        HeadOfLine
"""

QUEUED_DOCUMENT = f"""\
{BEGINNING}\
    Last Transition Micro Time:  2023-07-21T11:18:27.093222Z
    Last Update Micro Time:      2023-07-21T11:18:27.093222Z
    Message:                     Insufficient resources to dispatch AppWrapper.
    Reason:                      AppWrapperNotRunnable.
    Status:                      True
    Type:                        Backoff
  Controllerfirsttimestamp:      2023-07-21T11:18:27.082147Z
  Filterignore:                  true
  Number Of Requeueings:         0
  Queuejobstate:                 Backoff
  Requeueing Time In Seconds:    0
  Sender:                        before [backoff] - Rejoining
  State:                         Pending
"""

RUNNING = replace(
    QUEUED,
    state="Running",
    queue_job_state="Dispatched",
    can_run=True,
    sender="before manageQueueJob - afterEtcdDispatching",
    first_dispatch=START + 9_000_000,
    conditions=(*QUEUED.conditions[:3], true("Dispatched", 316208, "AppWrapperRunnable")),
    pods=PodCounts(running=2),
    dispatch=DispatchRecord(
        attempt=1,
        epoch=4,
        phase=DispatchPhase.DISPATCHED,
        payload="ab" * 32,
        inventory=(ObjectRef("apps", "v1", "deployments", "Deployment", "team", "d"),),
        since=START + 8_000_000,
        confirmed=START + 9_000_000,
    ),
)

RUNNING_DOCUMENT = f"""\
  Canrun:                        true
{BEGINNING}\
    Last Transition Micro Time:  2023-07-21T11:18:27.316208Z
    Last Update Micro Time:      2023-07-21T11:18:27.316208Z
    Reason:                      AppWrapperRunnable
    Status:                      True
    Type:                        Dispatched
  Controllerfirsttimestamp:      2023-07-21T11:18:27.082147Z
  Filterignore:                  true
  Queuejobstate:                 Dispatched
  Sender:                        before manageQueueJob - afterEtcdDispatching
  State:                         Running
"""


def test_a_queued_appwrapper_is_described_as_in_the_tutorial() -> None:
    lines = describe(rendered(QUEUED))
    assert (
        lines
        == [
            *squeezed(QUEUED_DOCUMENT)[:-4],
            "Observed Generation: 1",  # the only addition
            *squeezed(QUEUED_DOCUMENT)[-4:],
        ]
    )


def test_a_running_appwrapper_is_described_as_in_the_documents() -> None:
    """Our additions stand between the lines of the document and do not change their order."""
    lines = describe(rendered(RUNNING))
    documented = squeezed(RUNNING_DOCUMENT)
    rest = iter(lines)
    assert all(line in rest for line in documented)
    added = [line.partition(":")[0] for line in lines if line not in documented]
    assert added[0] == "Controllerfirstdispatchtimestamp"
    assert set(added) == {
        *("Controllerfirstdispatchtimestamp", "Observed Generation", "Running", "Dispatch"),
        *("Attempt", "Epoch", "Format", "Phase", "Payload SHA 256", "Intent Time", "Confirm Time"),
        *("Uid", "Inventory", "Group", "Version", "Resource", "Kind", "Namespace", "Name"),
    }


def test_the_wire_names_of_a_running_appwrapper() -> None:
    totals = (("cpu", 1500), ("memory", 5 * 2**30), ("nvidia.com/gpu", 8))
    pods = PodCounts(1, 2, 3, 4, totals=totals)
    status = rendered(replace(RUNNING, system_priority=5, requeueings=2, pods=pods))
    del status["conditions"]
    assert status == {
        "state": "Running",
        "queuejobstate": "Dispatched",
        "canrun": True,
        "filterignore": True,
        "sender": "before manageQueueJob - afterEtcdDispatching",
        "systempriority": 5,
        "controllerfirsttimestamp": "2023-07-21T11:18:27.082147Z",
        "controllerfirstdispatchtimestamp": "2023-07-21T11:18:36.000000Z",
        "numberOfRequeueings": 2,
        "pending": 1,
        "running": 2,
        "Succeeded": 3,
        "failed": 4,
        "totalcpu": 1500,
        "totalmemory": 5 * 2**30,
        "totalgpu": 8,
        "dispatch": {
            "format": 1,
            "uid": UID,
            "attempt": 1,
            "epoch": 4,
            "phase": "dispatched",
            "payloadSHA256": "ab" * 32,
            "inventory": [
                {
                    "group": "apps",
                    "version": "v1",
                    "resource": "deployments",
                    "kind": "Deployment",
                    "namespace": "team",
                    "name": "d",
                }
            ],
            "intentTime": "2023-07-21T11:18:35.000000Z",
            "confirmTime": "2023-07-21T11:18:36.000000Z",
        },
        "observedGeneration": 1,
    }


def test_pods_without_a_node_are_listed_as_mcad_listed_them() -> None:
    said = Unscheduled("0/3 nodes are available: 3 Insufficient cpu.", START)
    pods = PodCounts(pending=1, unscheduled=(("d-x2", said),))
    assert rendered(replace(RUNNING, pods=pods))["pendingpodconditions"] == [
        {
            "podname": "d-x2",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/3 nodes are available: 3 Insufficient cpu.",
                    "lastTransitionTime": format_instant(START),
                }
            ],
        }
    ]


def test_a_condition_that_is_false() -> None:
    over = Condition("Backoff", False, "AppWrapperRunnable", "", START, START)
    (condition,) = rendered(replace(QUEUED, conditions=(over,)))["conditions"]
    assert condition["status"] == "False"
    assert "message" not in condition


def test_v1beta2_has_a_phase_and_the_standard_time() -> None:
    status = rendered(replace(QUEUED, phase="Suspended"))
    assert status["phase"] == "Suspended"
    assert status["state"] == "Pending"
    assert status["conditions"][0]["lastTransitionTime"] == "2023-07-21T11:18:27.082148Z"


@pytest.mark.parametrize("view", [QUEUED, RUNNING, replace(QUEUED, phase="Suspended")])
def test_ours_are_the_fields_that_are_rendered(view: StatusView) -> None:
    """A field of ours that counted as another's would never go away again."""
    assert _fields(view, UID).keys() == STATUS
    assert rendered(view).keys() <= STATUS


# The wrapped objects of v1beta2

ITEMS = (
    Item(ObjectRef("batch", "v1", "jobs", "Job", "team", "train")),
    Item(ObjectRef("", "v1", "services", "Service", "team", "front")),
    Item(ObjectRef("", "v1", "pods", "Pod", "team", "one")),
)
SETS = (
    PodSet(0, 0, "template.spec.template", 3, ()),
    PodSet(2, 0, "template", 1, ()),
    PodSet(2, 1, "template.spec.other", 0, ()),
)
NEVER = replace(RUNNING, dispatch=None)


def components(view: StatusView) -> Any:
    return rendered(replace(view, phase="Running", items=ITEMS, sets=SETS))["componentStatus"]


def test_components_have_their_definite_pod_sets() -> None:
    told = [
        {key: value for key, value in one.items() if key != "conditions"}
        for one in components(NEVER)
    ]
    assert told == [
        {
            "name": "train",
            "kind": "Job",
            "apiVersion": "batch/v1",
            "podSets": [{"replicas": 3, "path": "template.spec.template"}],
        },
        {"name": "front", "kind": "Service", "apiVersion": "v1", "podSets": []},
        {
            "name": "one",
            "kind": "Pod",
            "apiVersion": "v1",
            "podSets": [
                {"replicas": 1, "path": "template"},
                {"replicas": 0, "path": "template.spec.other"},
            ],
        },
    ]


def deployed(status: bool) -> tuple[Condition, ...]:
    return (Condition("ResourcesDeployed", status, "any", "", START, START + 2_000_000),)


BEGUN = replace(RUNNING.dispatch, confirmed=0)


@pytest.mark.parametrize(
    ("conditions", "record", "told"),
    [
        ((), RUNNING.dispatch, None),
        (deployed(False), None, None),
        (
            deployed(True),
            BEGUN,
            ("Unknown", "ComponentCreationInitiated", "2023-07-21T11:18:35.000000Z"),
        ),
        (
            deployed(True),
            RUNNING.dispatch,
            ("True", "ComponentCreatedSuccessfully", "2023-07-21T11:18:36.000000Z"),
        ),
        (
            deployed(False),
            RUNNING.dispatch,
            ("False", "CompononetDeleted", "2023-07-21T11:18:29.000000Z"),
        ),
    ],
)
def test_conditions_of_components(
    conditions: tuple[Condition, ...], record: DispatchRecord | None, told: Any
) -> None:
    for one in components(replace(RUNNING, conditions=conditions, dispatch=record)):
        assert [
            (each["status"], each["reason"], each["lastTransitionTime"])
            for each in one["conditions"]
        ] == ([told] if told else [])


# Reading it back

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
INSTANTS = st.integers(1, 253_402_300_799_999_999)
REFS = st.builds(ObjectRef, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT)
CONDITIONS = st.builds(Condition, TEXT.filter(bool), st.booleans(), TEXT, TEXT, INSTANTS, INSTANTS)
COUNTS = st.integers(0, 2**31 - 1)
INCREASED = st.integers(0, MAX_COUNT)  # each may be increased, so fewer are read


def finishing(record: DispatchRecord) -> st.SearchStrategy[DispatchRecord]:
    numbers = (
        st.sets(st.sampled_from(range(len(record.inventory)))) if record.inventory else st.just(())
    )
    return numbers.map(lambda found: replace(record, finished=tuple(sorted(found))))


LATER = st.just(0) | INSTANTS
LEAVES = st.dictionaries(TEXT, TEXT).map(lambda leaves: tuple(sorted(leaves.items())))
REASONS = st.sampled_from(ReservationReason)
NAMES = st.lists(TEXT.filter(bool), max_size=MAX_NAMES).map(tuple)
RECORDS = st.builds(
    DispatchRecord,
    attempt=st.integers(1, MAX_ATTEMPT),
    epoch=COUNTS,
    phase=st.sampled_from(DispatchPhase),
    next=st.sampled_from(Next),
    inventory=st.lists(REFS, max_size=3).map(tuple),
    since=INSTANTS,
    quota=LEAVES,
    resumed=st.sets(st.integers(0, 511), max_size=3).map(lambda found: tuple(sorted(found))),
    added=st.lists(
        st.builds(
            AddedRequests,
            COUNTS,
            COUNTS,
            st.integers(1, 2**53).map(lambda n: (("cpu", n), ("memory", n))),
        ),
        max_size=2,
    ).map(tuple),
    **dict.fromkeys(("confirmed", "entered", "placed"), LATER),
    **dict.fromkeys(("payload", "reason", "message", "preemptor"), TEXT),
).flatmap(finishing)
CLAIMS = st.builds(
    Reservation,
    reason=REASONS,
    since=INSTANTS,
    **dict.fromkeys(("until", "start"), LATER),
    **dict.fromkeys(("nodes", "waits_for"), NAMES),
)
EVICTIONS = st.builds(
    Eviction, count=st.integers(1, MAX_COUNT), reason=REASONS, by=TEXT, title=TEXT, at=INSTANTS
)
TOTALS = st.just(()) | st.just((("cpu", 500), ("memory", 1 << 40), ("nvidia.com/gpu", 8)))
UNSCHEDULED = st.lists(st.tuples(TEXT, st.builds(Unscheduled, TEXT, INSTANTS)), max_size=3)
NAMED = st.text(min_size=1, max_size=8)
VIEWS = st.builds(
    StatusView,
    state=st.sampled_from(["Pending", "Running", "Completed", "Failed", "Deleted"]),
    phase=st.sampled_from(["", "Suspended", "Running", "Failed"]),
    can_run=st.booleans(),
    first_seen=INSTANTS,
    first_dispatch=LATER,
    system_priority=st.integers(-(2**31), 2**31 - 1),
    conditions=st.lists(CONDITIONS, max_size=4).map(tuple),
    pods=st.builds(PodCounts, *[COUNTS] * 4, totals=TOTALS, unscheduled=UNSCHEDULED.map(tuple)),
    requeueing_wait=COUNTS.map(lambda n: min(n, YEAR_S) * SECOND),
    dispatch=st.none() | RECORDS,
    items=st.just(()) | st.just(ITEMS),
    sets=st.just(()),
    reservation=st.none() | CLAIMS,
    eviction=st.none() | EVICTIONS,
    priority_source=st.none()
    | st.builds(PrioritySource, NAMED, NAMED, st.integers(-MAX_PRIORITY, MAX_PRIORITY)),
    **dict.fromkeys(("queue_job_state", "sender"), TEXT),
    observed_generation=COUNTS,
    **dict.fromkeys(("requeueings", "resets"), INCREASED),
)


@given(VIEWS)
def test_a_status_is_read_as_it_was_rendered(view: StatusView) -> None:
    same = ("state", "first_seen", "conditions", "dispatch", "first_dispatch", "requeueings")
    same += ("requeueing_wait", "resets", "pods", "observed_generation", "reservation", "eviction")
    same += ("priority_source",)
    assert read_status(rendered(view)) == Persisted(
        **{name: getattr(view, name) for name in same},
        foreign=view.state == "Running" and view.dispatch is None,
    )


@pytest.mark.parametrize(
    "status", [None, {}, [], "x", {"conditions": []}, {"dispatch": {}}, {"dispatch": None}]
)
def test_an_empty_status(status: Any) -> None:
    assert read_status(status) is None


SEEN = {"controllerfirsttimestamp": "2023-07-21T11:18:27.082147Z"}
FOREIGN = {
    "MCAD, queued: ours to dispatch": ({"state": "Pending", **SEEN}, "Pending", False),
    "MCAD, running: not ours to judge": ({"state": "Running", **SEEN}, "Running", True),
    "MCAD, about to complete": ({"state": "RunningHoldCompletion"}, "RunningHoldCompletion", True),
    "MCAD, completed: stays so": ({"state": "Completed", **SEEN}, "Completed", False),
    "MCAD, given up: stays so": ({"state": "Deleted", **SEEN}, "Deleted", False),
    "v1beta2, queued": ({"phase": "Suspended"}, "Pending", False),
    "v1beta2, resetting": ({"phase": "Resetting"}, "Resetting", True),
    "v1beta2, running": ({"phase": "Running"}, "Running", True),
    "v1beta2, succeeded: stays so": ({"phase": "Succeeded"}, "Completed", False),
    "v1beta2, failed: stays so": ({"phase": "Failed"}, "Failed", False),
}


@pytest.mark.parametrize(("status", "state", "foreign"), FOREIGN.values(), ids=FOREIGN.keys())
def test_the_statuses_of_upstream_controllers(status: Any, state: str, foreign: bool) -> None:
    saved = read_status(status)
    assert (saved.state, saved.foreign) == (state, foreign)


GARBAGE = {
    "a record without a phase": {"attempt": 1, "inventory": []},
    "a record in no phase of ours": {"attempt": 1, "inventory": [], "phase": "flying"},
    "a record that leads nowhere": {
        "attempt": 1,
        "inventory": [],
        "phase": "creating",
        "next": "lost",
    },
    "a record without an inventory": {"attempt": 1, "phase": "creating"},
    "a record of no attempt": {"attempt": True, "phase": "creating", "inventory": []},
}


@pytest.mark.parametrize("dispatch", GARBAGE.values(), ids=GARBAGE.keys())
def test_an_unreadable_record_of_a_running_appwrapper_is_left_alone(dispatch: Any) -> None:
    saved = read_status({"state": "Running", "dispatch": dispatch, **SEEN})
    assert (saved.dispatch, saved.foreign) == (None, True)


@pytest.mark.parametrize(
    ("field", "given", "read"),
    [
        ("quota", [{"tree": "gold", "leaf": "red"}], (("gold", "red"),)),
        ("quota", [{"tree": "gold", "leaf": 7}], (("gold", ""),)),
        ("quota", {"gold": "red"}, ()),
        ("finished", [0], (0,)),
        ("finished", [True, "0", None, -1, 1, 0], (0,)),
        *(("finished", none, ()) for none in ("0", None, {})),
        ("suspendedPodSets", [2, True, "0", None, -1, 1], (2, 1)),
        ("suspendedPodSets", "2", ()),
        ("placedTime", "2023-07-21T11:18:27Z", START),
        ("placedTime", 7, 0),
        (
            "addedRequests",
            [{"item": 1, "index": 2, "requests": {"cpu": "500m", "memory": "0", "x": []}}, {}, 7],
            (AddedRequests(1, 2, (("cpu", 500),)),),
        ),
        ("addedRequests", {"item": 1}, ()),
    ],
)
def test_malformed_parts_of_a_record_are_left_out(field: str, given: Any, read: tuple) -> None:
    record = rendered(RUNNING)["dispatch"] | {field: given}
    name = {
        "suspendedPodSets": "resumed",
        "placedTime": "placed",
        "addedRequests": "added",
    }.get(field, field)
    assert getattr(read_status({"dispatch": record}).dispatch, name) == read


@pytest.mark.parametrize(
    "text",
    [
        f"2023-07-21T{text}"
        for text in ("11:18:27.082147Z", "13:18:27.082147+02:00", "11:18:27.082147000Z")
    ],
)
def test_times_are_read_in_every_notation(text: str) -> None:
    assert parse_instant(text) == START + 82147


@pytest.mark.parametrize("text", ["", "2023-07-21", "2023-07-21T11:18:27", "yesterday", 5, None])
def test_what_is_no_time_is_never(text: Any) -> None:
    assert parse_instant(text) == 0
    assert format_instant(0) is None


def test_the_leaves_are_written_and_read_back() -> None:
    """Else a restart would write it again."""
    path = (("gold", "red"), ("silver", "default"))
    status = rendered(replace(QUEUED, quota=path))
    assert status["quota"] == [
        {"tree": "gold", "leaf": "red"},
        {"tree": "silver", "leaf": "default"},
    ]
    saved = read_status(status)
    assert saved.quota == path


def test_excluded_nodes_are_written_and_read_back() -> None:
    names = tuple(sorted(f"n{number}" for number in range(AVOIDED_MAX)))
    apart = (KeptApart(0, "a", names), KeptApart(1, "", ("n1",), preferred=True))
    assert RUNNING.dispatch is not None
    record = replace(RUNNING.dispatch, apart=apart)
    status = rendered(replace(RUNNING, dispatch=record))
    assert status["dispatch"]["excludedNodes"][1] == {
        "item": 1,
        "nodes": ["n1"],
        "preferred": True,
    }
    assert read_status(status).dispatch.apart == apart
    status["dispatch"]["excludedNodes"][0]["nodes"].append("one too many")
    assert read_status(status).dispatch.apart == apart


def test_since_when_a_tree_is_deleted_is_written_and_read_back() -> None:
    path, deleted = (("gold", "red"), ("silver", "default")), (("gold", START),)
    status = rendered(replace(QUEUED, quota=path, deleted_trees=deleted))
    assert status["quota"] == [
        {"tree": "gold", "leaf": "red", "treeDeleted": format_instant(START)},
        {"tree": "silver", "leaf": "default"},
    ]
    assert read_status(status).deleted_trees == deleted


@pytest.mark.parametrize("quota", [None, "gold", [7], [{"tree": "gold", "treeDeleted": "soon"}]])
def test_a_malformed_deletion_of_a_tree_is_none(quota: Any) -> None:
    assert read_status(rendered(QUEUED) | {"quota": quota}).deleted_trees == ()


CLAIM = Reservation(
    ReservationReason.PREEMPTING,
    since=START,
    until=START + 300 * SECOND,
    nodes=tuple(f"n{number:02d}" for number in range(20)),
    waits_for=tuple(f"team/w{number:02d}" for number in range(17)),
)


def test_a_reservation_names_its_first_nodes_and_their_number() -> None:
    """A gang on a thousand nodes would not fit into status otherwise."""
    reservation = rendered(replace(QUEUED, reservation=CLAIM))["reservation"]
    assert reservation == {
        "reason": "Preempting",
        "since": "2023-07-21T11:18:27.000000Z",
        "until": "2023-07-21T11:23:27.000000Z",
        "nodeCount": 20,
        "nodes": [f"n{number:02d}" for number in range(16)],
        "waitsFor": [f"team/w{number:02d}" for number in range(16)],
    }


@pytest.mark.parametrize("count", [1, 256, 257])
def test_the_placement_of_a_reservation_is_read_back_whole_or_not_at_all(count: int) -> None:
    names = tuple(f"n{number:03d}" for number in range(count))
    reservation = replace(CLAIM, nodes=names, pods=((2, 1),) * count, waits_for=())
    saved = read_status(rendered(replace(QUEUED, reservation=reservation)))
    known = replace(reservation, nodes=names[:16], pods=()) if count > 256 else reservation
    assert saved.reservation == known


SINCE = {"since": "2023-07-21T11:18:27Z"}


@pytest.mark.parametrize(
    ("field", "given"),
    [
        *(("reservation", one) for one in (SINCE, SINCE | {"reason": "Because"}, "Starved")),
        ("reservation", {"reason": "Starved"}),  # since never
        *(("eviction", one) for one in ({"reason": "Preempting"}, {"count": 1}, 7)),
        ("eviction", {"reason": "Preempting", "count": 0}),
    ],
)
def test_a_malformed_reservation_or_eviction_counts_as_absent(field: str, given: Any) -> None:
    assert getattr(read_status({"state": "Pending", field: given}), field) is None


def test_malformed_names_are_left_out() -> None:
    reservation = rendered(replace(QUEUED, reservation=CLAIM))["reservation"] | {
        "nodes": [7, "", None, "n"]
    }
    assert read_status({"reservation": reservation, **SEEN}).reservation.nodes == ("n",)


def test_of_many_conditions_the_last_are_read_back() -> None:
    conditions = [{"type": f"C{number}", "status": "True"} for number in range(70)]
    found = read_status({"conditions": conditions, **SEEN}).conditions
    assert [one.type for one in found] == [f"C{number}" for number in range(6, 70)]


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"phase": "migrating"}, "phase the string 'migrating'"),
        ({"next": "elsewhere"}, "next the string 'elsewhere'"),
        ({"format": 2}, "format 2"),
        ({"attempt": 0}, "without an attempt, a phase or an inventory"),
        ({"inventory": None}, "without an attempt, a phase or an inventory"),
    ],
)
def test_a_record_of_a_later_version_is_not_ignored(record: dict[str, Any], what: str) -> None:
    status = json.loads(json.dumps(rendered(RUNNING)))
    status["dispatch"] |= record
    read = read_status(status)
    assert (read.dispatch, read.unreadable) == (None, what)
    del status["dispatch"]["format"]
    if "format" in record:  # what older versions wrote says none
        assert read_status(status).dispatch == RUNNING.dispatch


EARLIER = {"intentTime": "2023-07-21T11:16:00Z"}
LATE = {"intentTime": "2023-07-21T11:18:26.5Z"}
ABOUT: dict[str, tuple[Any, bool]] = {
    "no status": (None, True),
    "no record": ({"state": "Pending"}, True),
    "its uid": ({"dispatch": {"uid": UID} | EARLIER}, True),
    "the uid of another object": ({"dispatch": {"uid": "other"} | LATE}, False),
    "an older version, before the object": ({"dispatch": {"attempt": 1} | EARLIER}, False),
    "an older version, by a clock that is behind": ({"dispatch": LATE}, True),
    "an older version, in the second of the creation": (
        {"dispatch": {"intentTime": "2023-07-21T11:18:27.4Z"}},
        True,
    ),
    "an older version, not a time": ({"dispatch": {"intentTime": "soon"}}, True),
}


@pytest.mark.parametrize(("status", "own"), ABOUT.values(), ids=ABOUT.keys())
def test_whether_a_record_is_about_this_object(status: Any, own: bool) -> None:
    assert is_about(status, UID, START) is own


def test_clocks_differ_by_less_than_a_record_without_uid_tells() -> None:
    for since, own in ((START - CLOCK_SKEW, True), (START - CLOCK_SKEW - 1, False)):
        assert is_about({"dispatch": {"intentTime": format_instant(since)}}, UID, START) is own
