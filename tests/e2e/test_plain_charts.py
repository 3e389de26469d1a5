"""Manifests of the shape of public Helm charts, wrapped: with default rights all of it runs, and
what ends completes.

Kinds that carry rights are not wrapped by default (docs/operate/security.md): they are applied
before, or the value that the message names allows them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.api.wrapped_kinds import DEFAULT_WRAPPED
from tests.chart.helm import Helm
from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import built_or_skip, controlplane_or_skip
from tests.e2e.process import ACCOUNT, NAMESPACE, Dispatcher, printed
from tests.e2e.support import cli, conditions_of, phases, status_of

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
CHARTS = Path(__file__).parent / "charts"
RUNNING = sorted(CHARTS.glob("*.yaml"))
ENDING = sorted((CHARTS / "ending").glob("*.yaml"))
PODS = {"helm-create": 1, "database": 1, "cache": 3, "ingress-controller": 1, "web": 3}
PLACE = "charts"
RIGHTS = frozenset({"ServiceAccount", "Role", "RoleBinding"})
HTTP_ROUTES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "httproutes.gateway.networking.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/gateway-api"},
    },
    "spec": {
        "group": "gateway.networking.k8s.io",
        "names": {"kind": "HTTPRoute", "plural": "httproutes", "listKind": "HTTPRouteList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def volume(name: str) -> Json:
    """A volume that a claim of a chart finds."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "hostPath": {"path": f"/{name}"},
        },
    }


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with controlplane_or_skip(kinds=printed("crd") + "---\n" + yaml.safe_dump(HTTP_ROUTES)) as one:
        one.add_node("node-1", cpu="4", memory="16Gi", extended={"ephemeral-storage": "9Gi"})
        one.kubectl("create", "namespace", PLACE)
        one.apply(yaml.safe_dump_all([volume(name) for name in ("first", "second", "third")]))
        yield one


def wait_until_running(plane: ControlPlane, name: str) -> None:
    def runs() -> bool:
        return status_of(plane, name, PLACE).get("phase") == "Running"

    plane.wait_for(runs, 60, f"{name} runs")


def documents(chart: Path) -> list[Json]:
    return [one for one in yaml.safe_load_all(chart.read_text()) if one is not None]


def submitted(plane: ControlPlane, chart: Path) -> list[Json]:
    """Wrap, check and submit what ``helm template`` gave; the items of the AppWrapper. What carries
    rights is applied before."""
    before = [one for one in documents(chart) if one["kind"] in RIGHTS]
    if before:
        plane.apply(yaml.safe_dump_all(before), namespace=PLACE)
    wrap = cli("wrap", str(chart), "--name", chart.stem, "-n", PLACE, "--without-rights")
    assert wrap.returncode == 0, wrap.stderr
    assert wrap.stderr.count("is left out: apply it before, with kubectl") == len(before)
    lint = cli("lint", "-", stdin=wrap.stdout, kubeconfig=plane.admin_kubeconfig)
    assert (lint.returncode, lint.stderr) == (0, ""), lint.stderr
    sent = cli("submit", "-", stdin=wrap.stdout, kubeconfig=plane.admin_kubeconfig)
    assert sent.returncode == 0, sent.stderr
    return [one["template"] for one in yaml.safe_load(wrap.stdout)["spec"]["components"]]


def cancelled(plane: ControlPlane, name: str) -> None:
    gone = cli("cancel", name, "-n", PLACE, kubeconfig=plane.admin_kubeconfig)
    assert gone.returncode == 0, gone.stderr
    plane.wait_for(lambda: not phases(plane, PLACE), 60, f"the pods of {name} are gone")


@pytest.mark.parametrize("chart", RUNNING, ids=lambda one: one.stem)
def test_a_chart_runs_with_default_rights(
    chart: Path, control_plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    made = submitted(control_plane, chart)
    wait_until_running(control_plane, chart.stem)
    running = ["Running"] * PODS[chart.stem]
    control_plane.wait_for(
        lambda: [*phases(control_plane, PLACE).values()] == running, 60, "all pods run"
    )
    for kind in {one["kind"] for one in made}:
        found = control_plane.kubectl("get", kind, "--namespace", PLACE, "-o", "name")
        assert found.strip(), f"no {kind} was created"
    cancelled(control_plane, chart.stem)


@pytest.mark.parametrize("chart", ENDING, ids=lambda one: one.stem)
def test_a_chart_that_ends_completes(
    chart: Path, control_plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    """Each item ends by itself: the AppWrapper has succeeded, its room is free."""
    made = submitted(control_plane, chart)

    def phase() -> str:
        found: str = status_of(control_plane, chart.stem, PLACE).get("phase", "")
        return found

    control_plane.wait_for(lambda: phase() in ("Succeeded", "Failed"), 90, "it ends")
    assert phase() == "Succeeded"
    ended = phases(control_plane, PLACE)
    assert len(ended) == sum(map(pods_of, made))
    assert set(ended.values()) == {"Succeeded"}
    cancelled(control_plane, chart.stem)


def pods_of(one: Json) -> int:
    """How many pods an object has until it ends."""
    return int(one["spec"].get("completions", 1)) if one["kind"] in ("Job", "Pod") else 0


def test_the_chart_that_helm_create_makes_runs(
    control_plane: ControlPlane, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    """As it is, rendered by Helm itself: its own account is applied before, its hook left out."""
    helm = Helm(built_or_skip(binaries.ensure_helm), tmp_path)
    helm.run("create", str(tmp_path / "fresh"))
    chart = tmp_path / "rendered.yaml"
    chart.write_text(helm.run("template", "mine", str(tmp_path / "fresh"), "--namespace", PLACE))
    submitted(control_plane, chart)
    wait_until_running(control_plane, chart.stem)
    control_plane.wait_for(
        lambda: [*phases(control_plane, PLACE).values()] == ["Running"], 60, "its pod runs"
    )
    cancelled(control_plane, chart.stem)


def test_what_carries_rights_is_held_and_the_message_names_what_allows_it(
    control_plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    path = str(CHARTS / "helm-create.yaml")
    wrap = cli("wrap", path, "--name", "whole", "-n", PLACE)
    assert "ServiceAccount mine-app carries rights" in wrap.stderr
    told = (
        "serviceaccounts may not be wrapped; an administrator can allow it with the chart's value "
        'wrappedResources: {apiGroup: "", resources: {serviceaccounts: ServiceAccount}, '
        "dangerous: true}. It carries rights: apply it before instead."
    )
    lint = cli("lint", "-", stdin=wrap.stdout, kubeconfig=control_plane.admin_kubeconfig)
    assert told in lint.stderr
    sent = cli("submit", "-", stdin=wrap.stdout, kubeconfig=control_plane.admin_kubeconfig)
    assert (sent.returncode, told in sent.stderr) == (0, True)

    def held() -> bool:
        found = conditions_of(control_plane, "whole", PLACE).values()
        return any(told in one.get("message", "") for one in found)

    control_plane.wait_for(held, 30, "the condition says so")
    assert (
        cli("cancel", "whole", "-n", PLACE, kubeconfig=control_plane.admin_kubeconfig).returncode
        == 0
    )


def test_the_value_that_the_message_names_allows_it(
    control_plane: ControlPlane, account: Path
) -> None:
    kinds = [one.model_dump(by_alias=True, mode="json") for one in DEFAULT_WRAPPED]
    core = next(one for one in kinds if not one["apiGroup"])
    core["resources"] = [*core["resources"], "serviceaccounts"]
    core["dangerous"] = True
    settings = ("--set", f"wrappedResources={json.dumps(kinds)}")
    rights = ("--namespace", NAMESPACE, "--service-account", ACCOUNT, *settings)
    control_plane.apply(printed("rbac", *rights))
    path = str(CHARTS / "helm-create.yaml")
    wrap = cli("wrap", path, "--name", "all", "-n", PLACE)
    control_plane.kubectl("delete", "serviceaccount", "mine-app", "--ignore-not-found", "-n", PLACE)
    with Dispatcher(control_plane, account, *settings):
        sent = cli("submit", "-", stdin=wrap.stdout, kubeconfig=control_plane.admin_kubeconfig)
        assert sent.returncode == 0, sent.stderr
        wait_until_running(control_plane, "all")
        assert "mine-app" in control_plane.kubectl("get", "sa", "--namespace", PLACE, "-o", "name")
