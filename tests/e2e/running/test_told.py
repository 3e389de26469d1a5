"""What is told within 10 s of pods that cannot run, and that it is told no longer when they do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher, counts_every, mcad
from tests.e2e.running.case import DIALECTS, Case, Json, at_once, wrapped
from tests.e2e.running.told import SOON, Why, assert_not_stalled, assert_told, pods_ready
from tests.e2e.support import cli

pytestmark = pytest.mark.controlplane

LONG = 60
STUCK = "controlplane.test/stuck"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """Its nodes are those of the cases."""
    return control_plane


@pytest.fixture(scope="module", autouse=True)
def dispatcher(plane: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    """One that renews pod counts often: that a stall is over is told along with them."""
    with Dispatcher(plane, account, **counts_every(5)) as running:
        yield running


def both(plane: ControlPlane, name: str, variant: str) -> list[Case]:
    """A case in both dialects, with nodes of its own, not submitted yet."""
    found = [Case(plane, name, dialect, ("4",), f"-{variant}") for dialect in DIALECTS]
    for one in found:
        one.add_nodes()
    plane.wait_for_nodes(node for one in found for node in one.nodes)
    return found


def stuck(plane: ControlPlane, name: str, how: str) -> list[Case]:
    """Both are submitted with pods that cannot run."""
    found = both(plane, name, how.lower())
    for one in found:
        meta = one.template["spec"]["template"].setdefault("metadata", {})
        meta["annotations"] = {STUCK: how}
        one.submit()
    return found


def check_they_go_on(cases: list[Case]) -> None:
    """What kept their pods from running is over, and that is told."""

    def goes_on(one: Case) -> None:
        for pod in one.pods():
            name = pod["metadata"]["name"]
            one.patch_pod(name, {"metadata": {"annotations": {STUCK: None}}})
        one.plane.wait_for(lambda: all(map(_is_up, one.pods())), LONG, "its pods run")
        assert_not_stalled(one)

    at_once(cases, goes_on)


def test_an_image_that_is_there_again_is_told_no_longer(plane: ControlPlane) -> None:
    def is_told(one: Case) -> None:
        one.wait_for_pods(2, "Pending")
        assert_told(one, Why.IMAGE, "busybox:misspelt")

    cases = stuck(plane, "image", "ImagePullBackOff")
    at_once(cases, is_told)
    check_they_go_on(cases)


def test_a_container_that_cannot_be_created(plane: ControlPlane) -> None:
    def is_told(one: Case) -> None:
        one.wait_for_pods(2, "Pending")
        assert_told(one, Why.CONTAINER, 'configmap "settings" not found')

    cases = stuck(plane, "suspended", "CreateContainerConfigError")
    at_once(cases, is_told)
    check_they_go_on(cases)


def test_a_container_that_crashes_again_and_again(plane: ControlPlane) -> None:
    """It is ready for a moment each time; one Event tells of all of it."""

    def is_told(one: Case) -> None:
        one.wait_for_pods(2)
        assert_told(one, Why.CRASH, "container c", "CrashLoopBackOff")
        plane.wait_for(lambda: min(map(_restarts, one.pods())) >= 3, LONG, "they crash again")
        assert_told(one, Why.CRASH, "container c", "CrashLoopBackOff")

    cases = stuck(plane, "growth", "CrashLoopBackOff")
    at_once(cases, is_told)
    check_they_go_on(cases)


def _restarts(pod: Json) -> int:
    found: int = pod["status"]["containerStatuses"][0]["restartCount"]
    return found


def _is_up(pod: Json) -> bool:
    return "running" in pod["status"]["containerStatuses"][0]["state"]


@pytest.mark.parametrize("name", ["suspended", "growth", "in-order"])
def test_pods_that_the_api_server_refuses(plane: ControlPlane, name: str) -> None:
    """A Job, a Deployment and a StatefulSet; only the second says so in its status."""

    def is_told(one: Case) -> None:
        plane.create_namespace(one.pool)
        enforced = "pod-security.kubernetes.io/enforce=restricted"
        plane.kubectl("label", "namespace", one.pool, enforced)
        one.submit()
        plane.wait_for(one.item, LONG, "its object")
        assert_told(one, Why.REFUSED, 'violates PodSecurity "restricted:latest"')
        assert pods_ready(one) != "True"

    at_once(both(plane, name, "refused"), is_told)


def test_what_is_submitted_suspended_is_told_at_once(plane: ControlPlane) -> None:
    def is_told(one: Case) -> None:
        one.template["spec"]["suspend"] = True
        one.submit()
        plane.wait_for(
            lambda: any("suspend" in event["message"] for event in one.events("ManifestWarning")),
            SOON,
            "a warning of the manifest",
        )
        plane.wait_for(one.item, LONG, "its object")
        assert_told(one, Why.SUSPENDED, "spec.suspend")
        manifest = wrapped(one.dialect, one.name, one.pool, one.template)
        linted = cli("lint", "--offline", "-f", "-", stdin=yaml.safe_dump(manifest))
        assert "suspend" in linted.stdout + linted.stderr

    at_once(both(plane, "suspended", "early"), is_told)


def test_pods_are_not_ready_while_it_is_suspended_or_requeued(plane: ControlPlane) -> None:
    """``kubectl wait`` does not lie."""
    case = Case(plane, "suspended", "v1beta2", ("2",), "-whole")
    case.add_nodes()
    plane.wait_for_nodes(case.nodes)
    case.submit()
    case.wait_for_pods(2)
    plane.wait_for(lambda: pods_ready(case) == "True", SOON, "they are ready")
    plane.kubectl("cordon", *case.nodes)
    mcad("requeue", f"{case.pool}/{case.name}", kubeconfig=plane.admin_kubeconfig)
    plane.wait_for(lambda: not case.pods(), LONG, "it is requeued")
    plane.wait_for(lambda: pods_ready(case) == "False", SOON, "and its pods are not ready")
    plane.kubectl("uncordon", *case.nodes)
    plane.wait_for(lambda: pods_ready(case) == "True", LONG, "it runs again")
    patch = '{"spec": {"suspend": true}}'
    whole = ("appwrapper", case.name, f"--namespace={case.pool}")
    plane.kubectl("patch", *whole, "--type=merge", "-p", patch)
    plane.wait_for(lambda: not case.pods(), LONG, "it is suspended")
    plane.kubectl("wait", *whole, "--for=condition=PodsReady=false", f"--timeout={SOON}s")
