"""Each case as its thread has it, in both dialects: one dispatcher, one control plane with the
operators, and nodes for each case. All are submitted at the beginning, what happens to them
happens, and one wait outlives every clock; then they are looked at.

A soak has the default settings. A push has clocks that are twice as fast, and so are the containers
that are slow in the threads: each is as late as before for the clocks that it is compared with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcad.api.config import Config
from tests import budget
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.controlplane.operators import JOBSET, KUBERAY_ALPHA, LEADER_WORKER_SET, Operators
from tests.e2e import fleet
from tests.e2e.process import Dispatcher, install, printed
from tests.e2e.running.acts import ACTS, CPUS, LONG, PRIORITY_CLASSES
from tests.e2e.running.case import DIALECTS, HERE, Case, Json, hasten, waiting
from tests.e2e.running.told import SOON, Why, assert_told, pages, pods_ready

pytestmark = pytest.mark.controlplane

FASTER = 1 if budget.SOAK else 2
OUTLIVED = 330 // FASTER
"""Seconds after which the longest clock, 300 s by default, has run out."""

GRACES = {
    "admissionGracePeriod": 60,
    "warmupGracePeriod": 300,
    "failureGracePeriod": 60,
    "retryPausePeriod": 90,
    "forcefulDeletionGracePeriod": 600,
}
CLOCKS = {
    "placementTimeout": 300 // FASTER,
    "faultTolerance": {name: seconds // FASTER for name, seconds in GRACES.items()},
}
"""The clocks of both dialects, by default or faster."""

AT_ONCE = 8
"""Cases to which something happens at the same time: each has nodes and a namespace of its own."""
ALONE = "retrying"
"""The case that lets KubeRay stand still."""

SUSPENDED = ("suspended", "suspended-ray")
IN_ORDER = ("in-order", "leader-ready", "depends-on")

Cases = dict[tuple[str, str], Case]
Find = Callable[[str], Case]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Two nodes for pods that say nothing of a node: KubeRay's submitters."""
    kinds = "\n---\n".join((printed("crd"), (HERE / "mpijobs-crd.yaml").read_text()))
    with controlplane_or_skip(kinds=kinds) as running:
        for number in range(2):
            running.add_node(f"common-{number}", cpu="8", memory="32Gi", wait=False)
        running.apply(PRIORITY_CLASSES)
        with Operators(running, KUBERAY_ALPHA, LEADER_WORKER_SET, JOBSET):
            yield running


@pytest.fixture(scope="module")
def cases(plane: ControlPlane) -> Iterator[Cases]:
    """All of them, submitted, and what happens to them has happened."""
    account: Path = install(plane)
    made = {
        (name, dialect): Case(plane, name, dialect, CPUS[name])
        for name in ACTS
        for dialect in DIALECTS
    }
    for one in made.values():
        hasten(one.template, FASTER)
        one.add_nodes()
    plane.wait_for_nodes(node for one in made.values() for node in one.nodes)
    settings = (f"--set={name}={json.dumps(value)}" for name, value in CLOCKS.items())
    with Dispatcher(plane, account, *settings) as dispatcher:
        for one in made.values():
            one.server = dispatcher.url
            one.submit()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(_act, (one for one in made.values() if one.case != ALONE)))
        for one in (made[ALONE, dialect] for dialect in DIALECTS):
            _act(one)
        yield made


def _act(case: Case) -> None:
    """What happens to a case; what goes wrong is a matter of its own tests, not of the others."""
    try:
        ACTS[case.case](case)
    except (AssertionError, TimeoutError) as error:
        case.trouble = error


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """Both."""
    found: str = request.param
    return found


@pytest.fixture
def case(cases: Cases, dialect: str) -> Find:
    """A case by its name, in the dialect of the test."""

    def find(name: str) -> Case:
        found = cases[name, dialect]
        if found.trouble is not None:
            raise AssertionError(f"{found.pool}: {found.trouble}") from found.trouble
        return found

    return find


@pytest.fixture(scope="module")
def outlived(cases: Cases, plane: ControlPlane) -> set[tuple[str, str]]:
    """Every clock has run out, that of the youngest pod without a node as well: it
    is the one that comes in place of the pod of the lost node, a minute later. Yields what the
    dispatcher has deleted by then: namespaces and names."""
    for one in (cases["lost-node", dialect] for dialect in DIALECTS):
        plane.wait_for(
            lambda one=one: list(waiting(one.pods())) or one.state() != "Running",
            LONG,
            f"{one.pool}: a pod in place of the lost one",
        )
    lost = [pod for dialect in DIALECTS for pod in waiting(cases["lost-node", dialect].pods())]
    born = [datetime.fromisoformat(one["metadata"]["creationTimestamp"]) for one in lost]
    end = max(born, default=datetime.now(UTC)) + timedelta(seconds=OUTLIVED)
    plane.wait_for(lambda: datetime.now(UTC) > end, 2 * OUTLIVED, "the clocks")
    return {
        (one.namespace, one.name)
        for one in fleet.ours(plane.audit())
        if one.verb in ("delete", "deletecollection")
    }


def test_the_clocks_are_those_of_the_defaults_but_for_their_speed() -> None:
    given = Config().model_dump(by_alias=True)
    graces = {name: given["faultTolerance"][name] for name in GRACES}
    assert (given["placementTimeout"], graces) == (300, GRACES)


# -- what is told within 10 s ----------------------------------------------------------------


NO_NODE = "nodes are available"
"""What kube-scheduler says; how many, and why, differs."""


def test_a_surplus_pod_without_a_node_is_told(case: Find) -> None:
    assert_told(case("growth"), Why.UNSCHEDULABLE, NO_NODE, "Insufficient cpu")


def test_a_run_without_a_node_is_told(case: Find) -> None:
    assert_told(case("cronjob"), Why.UNSCHEDULABLE, NO_NODE, "Insufficient cpu")


def test_a_worker_without_a_node_is_told(case: Find) -> None:
    assert_told(case("autoscaled"), Why.UNSCHEDULABLE, NO_NODE, "Insufficient cpu")


def test_gated_pods_are_told(case: Find) -> None:
    assert_told(case("gated"), Why.GATED, "scheduling gates")


def test_an_image_that_cannot_be_pulled_is_told(case: Find) -> None:
    assert_told(case("image"), Why.IMAGE, "busybox:misspelt", "not found")


def test_the_columns_name_an_image_that_cannot_be_pulled(case: Find) -> None:
    one = case("image")
    asked = ("get", "appwrapper", one.name, f"--namespace={one.pool}", "--output=wide")
    one.plane.wait_for(lambda: Why.IMAGE in one.plane.kubectl(*asked), SOON, "the columns")


@pytest.mark.parametrize("name", SUSPENDED)
def test_what_a_person_suspends_is_told(case: Find, name: str) -> None:
    one = case(name)
    assert_told(one, Why.SUSPENDED, "spec.suspend")
    assert pods_ready(one) != "True"


def test_workers_that_run_on_are_told(case: Find) -> None:
    one = case("workers-stay")
    assert_told(one, Why.PODS_REMAIN, f"{one.name}-worker-0", f"{one.name}-worker-1")


def test_a_preempted_pod_is_told(case: Find) -> None:
    """In the words of kube-scheduler: reason and message of the condition DisruptionTarget."""
    one = case("preempted")
    one.plane.wait_for(
        lambda: any("preempt" in event["message"].lower() for event in one.events()), SOON, "Event"
    )
    assert one.state() != "Failed"
    for page in pages(one):
        assert "preempt" in page.lower(), page


# -- what follows at once --------------------------------------------------------------------


def test_a_suspended_group_has_no_pods(case: Find) -> None:
    """Five of eight CPUs would not fit; head and one worker do."""
    one = case("suspended-group")
    one.wait_for_pods(2, seconds=LONG)
    assert one.state() == "Running"


def test_the_room_of_a_failed_index_goes_to_the_next(case: Find) -> None:
    one = case("failed-index")
    one.plane.wait_for(lambda: one.state("next") == "Running", LONG, "the next one runs")
    assert len(one.pods("Running")) == 2


@pytest.mark.parametrize("name", SUSPENDED)
def test_the_room_of_what_is_suspended_goes_to_the_next(case: Find, name: str) -> None:
    one = case(name)
    one.plane.wait_for(lambda: one.state("next") == "Running", LONG, "the next one runs")


def test_a_retry_of_kuberay_keeps_the_room(case: Find) -> None:
    """Its pods go and come again, and the next AppWrapper waits all the time."""
    one = case("retrying")
    one.plane.wait_for(
        lambda: not one.first_pods & {pod["metadata"]["uid"] for pod in one.pods()},
        LONG,
        "the first pods go",
    )
    one.wait_for_pods(3, seconds=LONG)
    assert one.state("next") == "Pending"


# -- what is left after all clocks -----------------------------------------------------------


def test_the_dispatcher_deleted_nothing(outlived: set[tuple[str, str]]) -> None:
    """But for the pods of an image that is not there, which were not ready in time: a reset."""
    assert outlived - {("image-v1beta2", "pull")} == set()


@pytest.mark.usefixtures("outlived")
def test_a_surplus_pod_waits_and_the_others_run_on(case: Find) -> None:
    one = case("growth")
    one.check_is_the_first_attempt()
    one.check_pods_stay()
    assert (len(one.pods("Running")), len(one.pods("Pending"))) == (3, 1)


@pytest.mark.usefixtures("outlived")
def test_a_run_that_does_not_fit_waits(case: Find) -> None:
    one = case("cronjob")
    one.check_is_the_first_attempt()
    assert list(waiting(one.pods()))


@pytest.mark.usefixtures("outlived")
def test_a_worker_that_does_not_fit_waits_and_the_ray_cluster_runs_on(case: Find) -> None:
    one = case("autoscaled")
    one.check_is_the_first_attempt()
    one.check_pods_stay()
    assert (len(one.pods("Running")), len(one.pods("Pending"))) == (3, 1)


@pytest.mark.usefixtures("outlived")
def test_a_lost_node_takes_one_pod_and_the_others_serve_on(case: Find) -> None:
    one = case("lost-node")
    one.check_is_the_first_attempt()
    one.check_pods_stay()
    assert (len(one.pods("Running")), len(one.pods("Pending"))) == (2, 1)
    assert_told(one, Why.UNSCHEDULABLE, NO_NODE)


@pytest.mark.usefixtures("outlived")
def test_a_surge_that_does_not_fit_waits_and_the_old_pods_serve_on(case: Find) -> None:
    one = case("surge")
    one.check_is_the_first_attempt()
    one.check_pods_stay()
    assert (len(one.pods("Running")), len(one.pods("Pending"))) == (2, 1)
    assert_told(one, Why.UNSCHEDULABLE, NO_NODE)


@pytest.mark.usefixtures("outlived")
def test_a_pod_in_place_of_a_preempted_one_waits(case: Find) -> None:
    one = case("preempted-job")
    one.check_is_the_first_attempt()
    assert len(one.pods("Pending")) == 1
    assert_told(one, Why.UNSCHEDULABLE, NO_NODE)
    one.plane.request("DELETE", f"/api/v1/namespaces/{one.pool}/pods/urgent")
    one.wait_for_pods(1)
    one.check_is_the_first_attempt()


@pytest.mark.usefixtures("outlived")
def test_gated_pods_run_when_their_gate_is_taken_away(case: Find) -> None:
    one = case("gated")
    one.check_is_the_first_attempt()
    one.check_pods_stay()
    for pod in one.pods():
        one.patch_pod(pod["metadata"]["name"], {"spec": {"schedulingGates": None}})
    one.wait_for_pods(2)
    one.check_is_the_first_attempt()


@pytest.mark.usefixtures("outlived")
def test_the_submitter_may_come_after_a_slow_image(case: Find) -> None:
    one = case("slow-image")
    one.check_is_the_first_attempt()
    assert len(one.pods("Running")) == 3
    assert one.status().get("retries", 0) == 0


@pytest.mark.usefixtures("outlived")
@pytest.mark.parametrize("name", IN_ORDER)
def test_pods_that_come_in_order_are_not_missed(case: Find, name: str) -> None:
    one = case(name)
    one.check_is_the_first_attempt()
    assert len(one.pods("Running")) == 3
    assert one.status().get("retries", 0) == 0


@pytest.mark.usefixtures("outlived")
def test_the_other_indexes_run_to_their_end(case: Find) -> None:
    one = case("failed-index")
    one.check_is_the_first_attempt()
    one.check_pods_stay()
    for pod in one.pods("Running"):
        one.end_pod(pod, 0)
    one.plane.wait_for(lambda: _ended(one.item()), LONG, "the Job has ended")
    status = one.item()["status"]
    assert (status["succeeded"], status["failedIndexes"]) == (2, "1")


def _ended(job: Json) -> bool:
    return any(one["type"] == "Failed" for one in job.get("status", {}).get("conditions", []))


@pytest.mark.usefixtures("outlived")
def test_a_retry_of_kuberay_is_no_end(case: Find) -> None:
    one = case("retrying")
    one.check_is_the_first_attempt()
    assert len(one.pods("Running")) == 3
    assert one.state("next") == "Pending"


@pytest.mark.usefixtures("outlived")
@pytest.mark.parametrize("name", SUSPENDED)
def test_what_is_suspended_stays_so_until_it_is_resumed(case: Find, name: str) -> None:
    """Its pods are surplus then: they wait for the room that another AppWrapper has."""
    one = case(name)
    one.check_is_the_first_attempt()
    assert one.item()["spec"]["suspend"] is True
    assert one.pods() == []
    assert pods_ready(one) != "True"
    assert one.status().get("retries", 0) == 0
    one.patch_item({"spec": {"suspend": False}})
    assert_told(one, Why.UNSCHEDULABLE, NO_NODE)
    one.plane.request("DELETE", f"{_appwrappers(one)}/next")
    one.wait_for_pods(2)
    one.check_is_the_first_attempt()


def _appwrappers(case: Case) -> str:
    return f"/apis/workload.codeflare.dev/v1beta2/namespaces/{case.pool}/appwrappers"


@pytest.mark.usefixtures("outlived")
def test_workers_run_on_until_a_person_deletes_them(case: Find) -> None:
    one = case("workers-stay")
    one.check_is_the_first_attempt()
    one.check_pods_stay()


@pytest.mark.usefixtures("outlived")
def test_a_preempted_pod_is_tried_again(case: Find) -> None:
    one = case("preempted")
    assert one.state() in ("Running", "Pending"), one.status()
    one.plane.request("DELETE", f"/api/v1/namespaces/{one.pool}/pods/urgent")
    one.wait_for_pods(1, seconds=4 * LONG)
    assert one.state() == "Running"
    assert one.attempt > 1
