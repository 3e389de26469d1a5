"""Every sample can be read without a problem or a warning, and asks for what its text says."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import WELL_KNOWN, StaticCatalog
from mcad.api.config import Config
from mcad.core.model import Dialect
from mcad.core.quantity import format_amount

SAMPLES = Path(__file__).parents[2] / "samples"

RAY = [("", 1, "cpu=1500m,memory=2560Mi,pods=1"), ("", 1, "cpu=1,memory=1Gi,pods=1")]

# file -> (name, kinds in order, pod sets: path, replicas, request of one pod)
EXPECTED: dict[str, tuple[str, list[str], list[tuple[str, int, str]]]] = {
    "aw-01.yaml": (
        "0001-aw-generic-deployment-1",
        ["Deployment"],
        [("template.spec.template", 2, "cpu=100m,memory=256Mi,pods=1")],
    ),
    "aw-02.yaml": (
        "0002-aw-generic-deployment-2",
        ["Deployment"],
        [("template.spec.template", 2, "cpu=75m,memory=256Mi,pods=1")],
    ),
    "aw-pod.yaml": ("aw-pod", ["Pod"], [("template", 1, "cpu=500m,memory=128Mi,pods=1")]),
    "aw-job.yaml": (
        "aw-job",
        ["Job"],
        [("template.spec.template", 4, "cpu=250m,memory=64Mi,pods=1")],
    ),
    "aw-gang.yaml": (
        "aw-gang",
        ["ConfigMap", "Service", "Job", "Job"],
        [
            ("template.spec.template", 1, "cpu=500m,memory=256Mi,pods=1"),
            ("template.spec.template", 4, "cpu=1,memory=512Mi,pods=1"),
        ],
    ),
    "aw-components.yaml": (
        "aw-components",
        ["Job", "Pod"],
        [
            ("template.spec.template", 2, "cpu=500m,memory=256Mi,pods=1"),
            ("template", 1, "cpu=100m,memory=64Mi,pods=1"),
        ],
    ),
    "aw-retry.yaml": (
        "aw-retry",
        ["Job"],
        [("template.spec.template", 1, "cpu=500m,memory=64Mi,pods=1")],
    ),
    "aw-service.yaml": (
        "aw-service",
        ["Service", "Deployment"],
        [("template.spec.template", 3, "cpu=100m,memory=64Mi,pods=1")],
    ),
    "aw-raycluster.yaml": ("raycluster-autoscaler", ["RayCluster"], RAY),
    "aw-raycluster-1.yaml": ("raycluster-autoscaler-1", ["RayCluster"], RAY),
}


def test_the_table_is_complete() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == set(EXPECTED)


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


@pytest.mark.parametrize("name", [name for name in EXPECTED if "ray" in name])
def test_the_pods_declared_for_ray_are_those_that_would_be_inferred(name: str) -> None:
    obj = _load(name)
    declared = _parsed(obj).workload.sets
    del obj["spec"]["resources"]["GenericItems"][0]["custompodresources"]
    inferred = _parsed(obj).workload.sets
    assert [(one.replicas, one.request) for one in inferred] == [
        (one.replicas, one.request) for one in declared
    ]


def test_the_two_ray_clusters_differ_in_their_names_only() -> None:
    first, second = (
        (SAMPLES / name).read_text().partition("apiVersion:")[2]
        for name in ("aw-raycluster.yaml", "aw-raycluster-1.yaml")
    )
    assert first.replace("raycluster-autoscaler", "raycluster-autoscaler-1") == second


def test_dialects() -> None:
    dialects = {name: _parsed(_load(name)).workload.dialect for name in EXPECTED}
    later = [name for name, dialect in dialects.items() if dialect is Dialect.V1BETA2]
    assert later == ["aw-components.yaml", "aw-retry.yaml"]


def _load(name: str) -> dict[str, Any]:
    obj: dict[str, Any] = yaml.safe_load((SAMPLES / name).read_text())
    return obj


def _parsed(obj: dict[str, Any]) -> Parsed:
    return parse(obj, StaticCatalog.of(WELL_KNOWN, Config().allowed))


def _words(request: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"{name}={format_amount(name, value)}" for name, value in request)
