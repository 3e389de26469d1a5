"""``mcad wrap`` of what kubectl exports: objects that others of the list own are left out."""

from __future__ import annotations

import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.running.case import DIALECTS, Json, template
from tests.e2e.support import cli, pods, states

pytestmark = pytest.mark.controlplane

LONG = 60


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """One node."""
    control_plane.add_node("node-1", cpu="16")
    return control_plane


def items(made: Json) -> list[Json]:
    """The wrapped objects, in either dialect."""
    spec = made["spec"]
    if "components" in spec:
        return [one["template"] for one in spec["components"]]
    return [one["generictemplate"] for one in spec["resources"]["GenericItems"]]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_owned_objects_are_left_out_and_named(
    plane: ControlPlane, dispatcher: Dispatcher, dialect: str
) -> None:
    space = f"shop-{dialect}"
    plane.create_namespace(space)
    inside = f"--namespace={space}"
    plane.apply([template("growth"), template("lost-node")], namespace=space)
    plane.wait_for(lambda: len(pods(plane, space)) == 5, LONG, "pods of both")
    kinds = "deployments,replicasets,pods"
    exported = plane.kubectl("get", kinds, inside, "--output=yaml")
    names = plane.kubectl("get", "replicasets,pods", inside, "--output=name").split()
    assert len(names) == 7

    done = cli("wrap", "-f", "-", "--name=shop", f"--dialect={dialect}", stdin=exported)
    assert done.returncode == 0, done.stderr
    (made,) = yaml.safe_load_all(done.stdout)
    assert [(one["kind"], one["metadata"]["name"]) for one in items(made)] == [
        ("Deployment", "svc"),
        ("Deployment", "web"),
    ]
    for name in names:
        assert name.split("/")[1] in done.stderr, f"{name} is not named in\n{done.stderr}"

    plane.kubectl("delete", "deployments", "--all", inside)
    plane.wait_for(lambda: not pods(plane, space), LONG, "the originals are gone")
    plane.kubectl("create", "-f", "-", inside, stdin=done.stdout)
    plane.wait_for(lambda: states(plane, space) == {"shop": "Running"}, LONG, "it is dispatched")
    plane.wait_for(lambda: len(pods(plane, space)) == 5, LONG, "its pods are there")


def test_a_job_and_its_pods(plane: ControlPlane) -> None:
    plane.create_namespace("batch")
    plane.apply(template("suspended"), namespace="batch")
    plane.wait_for(lambda: len(pods(plane, "batch")) == 2, LONG, "its pods")
    exported = plane.kubectl("get", "pods,jobs", "--namespace=batch", "--output=yaml")
    done = cli("wrap", "-f", "-", "--name=train", stdin=exported)
    assert done.returncode == 0, done.stderr
    assert [one["kind"] for one in items(yaml.safe_load(done.stdout))] == ["Job"]
    for pod in pods(plane, "batch"):
        assert pod["metadata"]["name"] in done.stderr
