"""Two arithmetics of what a pod requests: the dispatcher's, and the one that judges it.

``test_requests_real.py`` judges the judge.
"""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest

from mcad.api.podspec import effective_request
from mcad.kube.types import Json
from mcad.sim.kinds import KindTable
from mcad.sim.objects.checks import Checks
from mcad.sim.objects.requests import requested, whole
from mcad.sim.writes import Write
from tests import budget
from tests.sim.randompods import canonical_lists, random_spec, random_status, stored

PODS = 100_000 if budget.SOAK else budget.examples(20_000)
THROUGH_THE_SERVER = 2_000
SHOWN = 5  # of those that differ


def judged(spec: Json, status: Json | None = None) -> dict[str, int]:
    counted = whole(requested(spec, status)) | {"pods": 1}
    return {name: size for name, size in counted.items() if size}


def counted(spec: Json, status: Json | None = None) -> dict[str, int]:
    return dict(effective_request(spec, status))


@pytest.mark.drawn
def test_the_dispatcher_counts_pods_as_their_judge_does() -> None:
    """Manifests as users write them, and live pods while they are resized."""
    rng = Random(2026)
    differing: list[Json] = []
    changed = 0
    for _ in range(PODS):
        manifest = random_spec(rng)
        live = stored(manifest)
        status = canonical_lists(random_status(rng, manifest))
        wanted, used = judged(live), judged(live, status)
        changed += used != wanted
        if not counted(manifest) == counted(live) == wanted or counted(live, status) != used:
            differing.append({"spec": manifest, "status": status})
    assert differing[:SHOWN] == []
    assert changed > PODS // 2, "or the comparison says little about pods that are resized"


def test_a_pod_is_stored_with_those_requests() -> None:
    rng, checks, kind = Random(7), Checks(), KindTable().by_kind("v1", "Pod")
    assert kind
    for _ in range(THROUGH_THE_SERVER):
        manifest = random_spec(rng)
        body = {"metadata": {"name": "p", "namespace": "n"}, "spec": deepcopy(manifest)}
        made = checks.complete(kind, body, Write())
        assert requested(made["spec"]) == requested(stored(manifest)), manifest
