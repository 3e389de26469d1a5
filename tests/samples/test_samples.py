"""Every sample can be read without a problem or a warning, and asks for what its text says."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import WELL_KNOWN, StaticCatalog
from mcad.api.config import Config
from mcad.core.state.model import PodSet
from mcad.core.state.quantity import format_amount
from tests.samples.dialects import in_other_dialect

SAMPLES = Path(__file__).parents[2] / "samples"

# A sample: its file, its name, its kinds in order; below it its pod sets: the path (T is that of a
# workload, - none: declared by numbers), replicas, and the request of one pod.
TABLE = """
aw-01.yaml 0001-aw-generic-deployment-1 Deployment
    T 2 cpu=100m,memory=256Mi
aw-02.yaml 0002-aw-generic-deployment-2 Deployment
    T 2 cpu=75m,memory=256Mi
aw-pod.yaml aw-pod Pod
    template 1 cpu=500m,memory=128Mi
aw-job.yaml aw-job Job
    T 4 cpu=250m,memory=64Mi
aw-gang.yaml aw-gang ConfigMap Service Job Job
    T 1 cpu=500m,memory=256Mi
    T 4 cpu=1,memory=512Mi
aw-components.yaml aw-components Job Pod
    T 2 cpu=500m,memory=256Mi
    template 1 cpu=100m,memory=64Mi
aw-rack.yaml aw-rack Job
    T 2 cpu=500m,memory=256Mi
aw-retry.yaml aw-retry Job
    T 1 cpu=500m,memory=64Mi
aw-service.yaml aw-service Service Deployment
    T 3 cpu=100m,memory=64Mi
aw-pods.yaml aw-pods Service Pod Pod Pod
    template 1 cpu=200m,memory=64Mi
    template 1 cpu=100m,memory=64Mi
    template 1 cpu=100m,memory=64Mi
aw-statefulset.yaml aw-statefulset Service StatefulSet
    T 3 cpu=100m,memory=64Mi
aw-suspended.yaml aw-suspended Job
    T 2 cpu=250m,memory=64Mi
aw-autopilot.yaml aw-autopilot Job
    T 2 cpu=1,memory=1Gi,nvidia.com/gpu=4
aw-pytorchjob.yaml aw-pytorchjob PyTorchJob
    template.spec.pytorchReplicaSpecs.Master.template 1 cpu=1,memory=512Mi
    template.spec.pytorchReplicaSpecs.Worker.template 2 cpu=1,memory=512Mi
aw-pytorchjob-v1beta1.yaml aw-pytorchjob-v1beta1 PyTorchJob
    - 3 cpu=1,memory=512Mi
aw-tfjob.yaml aw-tfjob TFJob
    template.spec.tfReplicaSpecs.Chief.template 1 cpu=1,memory=256Mi
    template.spec.tfReplicaSpecs.PS.template 1 cpu=500m,memory=512Mi
    template.spec.tfReplicaSpecs.Worker.template 2 cpu=1,memory=256Mi
aw-mpijob.yaml aw-mpijob MPIJob
    template.spec.mpiReplicaSpecs.Launcher.template 1 cpu=500m,ephemeral-storage=5Gi,memory=1Gi
    template.spec.mpiReplicaSpecs.Worker.template 2 cpu=1,memory=256Mi
aw-jobset.yaml aw-jobset JobSet
    template.spec.replicatedJobs[0].template.spec.template 1 cpu=500m,memory=128Mi
    template.spec.replicatedJobs[1].template.spec.template 4 cpu=1,memory=256Mi
aw-jobset-v1beta1.yaml aw-jobset-v1beta1 JobSet
    template.spec.replicatedJobs[0].template.spec.template 4 cpu=1,memory=256Mi
aw-podgroup.yaml aw-podgroup PodGroup Job
    T 3 cpu=200m,memory=64Mi
aw-leaderworkerset.yaml aw-leaderworkerset LeaderWorkerSet
    template.spec.leaderWorkerTemplate.leaderTemplate 2 cpu=500m,memory=128Mi
    template.spec.leaderWorkerTemplate.workerTemplate 4 cpu=1,memory=256Mi
aw-rayjob.yaml aw-rayjob RayJob
    template.spec.rayClusterSpec.headGroupSpec.template 1 cpu=1,memory=2Gi
    template.spec.rayClusterSpec.workerGroupSpecs[0].template 1 cpu=1,memory=1Gi
    template.spec.submitterPodTemplate 1 cpu=500m,memory=200Mi
aw-raycluster.yaml raycluster-autoscaler RayCluster
    - 1 cpu=1500m,memory=2560Mi
    - 1 cpu=1,memory=1Gi
aw-raycluster-1.yaml raycluster-autoscaler-1 RayCluster
    - 1 cpu=1500m,memory=2560Mi
    - 1 cpu=1,memory=1Gi
"""
PATHS = {"T": "template.spec.template", "-": ""}


def _expected() -> dict[str, tuple[str, list[str], list[tuple[str, int, str]]]]:
    found: dict[str, tuple[str, list[str], list[tuple[str, int, str]]]] = {}
    sets: list[tuple[str, int, str]] = []
    for line in TABLE.strip().splitlines():
        first, second, *rest = line.split()
        if line.startswith(" "):
            (request,) = rest
            sets.append((PATHS.get(first, first), int(second), f"{request},pods=1"))
        else:
            sets = []
            found[first] = (second, rest, sets)
    return found


EXPECTED = _expected()


def _text(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_the_table_is_complete() -> None:
    assert {path.name for path in SAMPLES.iterdir() if path.is_file()} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_is_read_without_problem_or_warning(name: str) -> None:
    parsed = _parsed(_load(name))
    assert parsed.problems == ()
    assert parsed.workload.warnings == ()
    assert not any(item.guessed for item in parsed.workload.items)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_asks_for_what_it_says(name: str) -> None:
    title, kinds, sets = EXPECTED[name]
    work = _parsed(_load(name)).workload
    assert work.name == title
    assert [item.ref.kind for item in work.items] == kinds
    assert [(one.path, one.replicas, _words(one.request)) for one in work.sets] == sets


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_says_first_what_it_shows(name: str) -> None:
    head, _, rest = (SAMPLES / name).read_text().partition("apiVersion:")
    assert rest
    assert len(head) > 100
    assert all(line.startswith("#") and len(line) <= 100 for line in head.splitlines())


def demand(sets: Sequence[PodSet]) -> Counter[Any]:
    """Requests of pods, and how many pods have them."""
    return Counter(one.request for one in sets for _ in range(one.replicas))


@pytest.mark.parametrize(
    "name", [name for name in EXPECTED if re.search("custompod|podSets", _text(name))]
)
def test_the_pods_that_are_declared_are_those_that_would_be_inferred(name: str) -> None:
    obj = _load(name)
    declared = _parsed(obj).workload.sets
    for part in parts(obj):
        part.pop("custompodresources", None)
        part.pop("podSets", None)
    assert demand(_parsed(obj).workload.sets) == demand(declared)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_other_dialect_asks_for_the_same(name: str) -> None:
    """Whatever is wrapped, items become components and the other way round."""
    obj = _load(name)
    other = _parsed(in_other_dialect(obj))
    assert other.problems == ()
    assert other.workload.dialect is not _parsed(obj).workload.dialect
    assert demand(other.workload.sets) == demand(_parsed(obj).workload.sets)


def parts(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Items or components."""
    found: list[dict[str, Any]] = (
        obj["spec"].get("components") or obj["spec"]["resources"]["GenericItems"]
    )
    return found


def test_the_two_ray_clusters_differ_in_their_names_only() -> None:
    first, second = (
        (SAMPLES / name).read_text().partition("apiVersion:")[2]
        for name in ("aw-raycluster.yaml", "aw-raycluster-1.yaml")
    )
    assert first.replace("raycluster-autoscaler", "raycluster-autoscaler-1") == second


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_is_in_the_dialect_of_its_version(name: str) -> None:
    obj = _load(name)
    version = obj["apiVersion"].rpartition("/")[2]
    assert _parsed(obj).workload.dialect.name == version.upper()


def _load(name: str) -> dict[str, Any]:
    obj: dict[str, Any] = yaml.safe_load(_text(name))
    return obj


def _parsed(obj: dict[str, Any]) -> Parsed:
    return parse(obj, StaticCatalog.of(WELL_KNOWN, Config().allowed))


def _words(request: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"{name}={format_amount(name, value)}" for name, value in request)
