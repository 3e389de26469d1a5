"""``mcad migrate check``: what manifests of the predecessors do differently here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Type
from tests.e2e.support import appwrapper, configmap, pod
from tests.fakeapi import GROUP

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
NOTES = "metadata.annotations.workload.codeflare.dev.appwrapper/"


def job(**spec: Any) -> Json:
    """A Job."""
    template = {"spec": pod("x")["spec"]}
    metadata = {"name": "x"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template, **spec},
    }


def old(*items: Json, **spec: Any) -> Json:
    """An AppWrapper of MCAD."""
    generic = [{"generictemplate": one} for one in items]
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": "x"},
        "spec": {"resources": {"GenericItems": generic}, **spec},
    }


def gpus(count: int, name: str = "nvidia.com/gpu") -> Json:
    """A pod that asks for devices."""
    found = pod("x")
    found["spec"]["containers"][0]["resources"] = {
        "requests": {name: count},
        "limits": {name: count},
    }
    return found


def classed(name: str) -> Json:
    """A pod of a PriorityClass."""
    found = pod("x")
    found["spec"]["priorityClassName"] = name
    return found


def noted(obj: Json, **metadata: Any) -> Json:
    """The object with more metadata."""
    return obj | {"metadata": obj["metadata"] | metadata}


ITEM = "spec.resources.GenericItems[0].generictemplate"
CASES: dict[str, tuple[Json, list[str]]] = {
    "plain": (old(pod("x")), []),
    "priority": (old(pod("x"), priority=5), ["spec.priority"]),
    "slope": (old(pod("x"), priorityslope=0.5), ["spec.priority"]),
    "a PriorityClass": (old(classed("high")), ["spec.priority"]),
    "a PriorityClass that does not count": (old(classed("high"), priority=0), []),
    "a PriorityClass that counted": (appwrapper("x", classed("high")), []),
    "a WorkloadPriorityClass": (
        noted(appwrapper("x", pod("x")), labels={"kueue.x-k8s.io/priority-class": "high"}),
        ["metadata.labels.kueue.x-k8s.io/priority-class"],
    ),
    "a WorkloadPriorityClass that does not count": (
        noted(
            appwrapper("x", pod("x"), priority=3), labels={"kueue.x-k8s.io/priority-class": "high"}
        ),
        [],
    ),
    "minAvailable": (
        old(pod("x"), schedulingSpec={"minAvailable": 1}),
        ["spec.schedulingSpec.minAvailable"],
    ),
    "minAvailable with requeuing": (
        old(pod("x"), schedulingSpec={"minAvailable": 1, "requeuing": {"timeInSeconds": 90}}),
        [],
    ),
    "a short time": (
        old(pod("x"), schedulingSpec={"minAvailable": 1, "requeuing": {"timeInSeconds": 59}}),
        ["spec.schedulingSpec.requeuing.timeInSeconds"],
    ),
    "requeuings": (
        old(pod("x"), schedulingSpec={"minAvailable": 1, "requeuing": {"maxNumRequeuings": 2}}),
        ["spec.schedulingSpec.requeuing.maxNumRequeuings"],
    ),
    "a limit": (
        old(pod("x"), schedulingSpec={"dispatchDuration": {"limit": 60}}),
        ["spec.schedulingSpec.dispatchDuration.limit"],
    ),
    "a parallel Job": (old(job(parallelism=3)), [f"{ITEM}.spec.parallelism"]),
    "GPUs": (old(gpus(2)), [ITEM]),
    "other devices": (old(gpus(1, "example.com/fpga")), [ITEM]),
    "a queue": (
        noted(appwrapper("x", pod("x")), labels={"kueue.x-k8s.io/queue-name": "red"}),
        ["metadata.labels.kueue.x-k8s.io/queue-name"],
    ),
    "suspended": (appwrapper("x", pod("x"), suspend=True), ["spec.suspend"]),
    "not suspended": (appwrapper("x", pod("x"), suspend=False), []),
    "waves": (
        appwrapper("x", job(completions=4, parallelism=2)),
        ["spec.components[0].template.spec.completions"],
    ),
    "no pods": (appwrapper("x", configmap("x")), ["spec.components"]),
    "nine pod sets": (
        appwrapper("x", *(noted(pod("x"), name=f"x{n}") for n in range(9))),
        ["spec.components"],
    ),
    "retries": (
        noted(
            appwrapper("x", pod("x")),
            annotations={"workload.codeflare.dev.appwrapper/retryLimit": "2"},
        ),
        [f"{NOTES}retryLimit"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fields_that_do_something_else(mcad: Type, tmp_path: Path, case: str) -> None:
    obj, paths = CASES[case]
    file = tmp_path / "aw.yaml"
    file.write_text(yaml.safe_dump(obj))
    done = mcad("migrate", "check", str(file))
    assert (done.exit_code, done.stderr) == (0, "")
    title, *lines = done.stdout.splitlines()
    reference = f"appwrapper.{GROUP}/x"
    assert title == f"{file}: {reference}{'' if paths else ' does what it did'}"
    assert [line.strip() for line in lines[::3]] == paths
    assert all(line.startswith("    before: ") for line in lines[1::3])
    assert all(line.startswith("    here:   ") for line in lines[2::3])


def test_what_cannot_run_here(mcad: Type, tmp_path: Path) -> None:
    file = tmp_path / "aw.yaml"
    file.write_text(yaml.safe_dump(old(noted(pod("x"), namespace="other"))))
    done = mcad("migrate", "check", str(file))
    assert done.exit_code == 1
    assert "generictemplate.metadata.namespace" in done.stderr


def test_all_samples_can_be_checked(mcad: Type) -> None:
    for file in sorted((ROOT / "samples").glob("aw-*.yaml")):
        done = mcad("migrate", "check", str(file))
        assert done.exit_code == 0, (file, done.stderr)
