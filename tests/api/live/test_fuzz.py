"""Whatever an object looks like, it is read without an exception, and its counts have bounds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcad.api.catalog import WELL_KNOWN
from mcad.api.children import read_child
from mcad.api.live import read, suspended_by
from mcad.api.live.batch import count_indexes
from mcad.api.located_fields import MAX_COUNT
from mcad.core.state.model import Child, ItemState, PodSet
from tests.api.builders import accepted, v1beta1
from tests.api.live.states import stored
from tests.api.live.test_states import ROWS
from tests.api.strategies import JSON, mutated, shaped

STORED = [stored(row) for row in ROWS.values()]
PATHS = {
    f"{one.ref.group}/{one.ref.kind}": parsed.workload.sets
    for parsed in (accepted(v1beta1(row.thing)) for row in ROWS.values())
    for one in parsed.workload.items
}
KEYS = (
    *("metadata", "spec", "status", "conditions", "type", "replicas", "active", "succeeded"),
    *("failed", "ready", "parallelism", "completions", "failedIndexes", "replicatedJobs", "name"),
    *("replicatedJobsStatus", "dependsOn", "suspend", "replicaStatuses", "Worker", "Launcher"),
    *("jobDeploymentStatus", "workerGroupSpecs", "rayClusterSpec", "applicationState", "state"),
    *("managedFields", "fieldsV1", "f:spec", "f:suspend", "message", "leaderWorkerTemplate"),
)


def sound(child: Child, sets: tuple[PodSet, ...]) -> None:
    assert len(child.wants) == len(sets)
    for one in child.wants:
        assert one is None or (0 <= one.now <= MAX_COUNT and 0 <= one.later <= MAX_COUNT)
    assert child.ended >= 0
    assert bool(child.suspended) >= (child.state is ItemState.SUSPENDED)
    assert len(child.words) <= 256
    assert len(child.suspended) <= 512


@given(st.data())
def test_stored_objects_with_anything_in_them(data: st.DataObject) -> None:
    thing = data.draw(mutated(STORED))
    resource = data.draw(st.sampled_from(WELL_KNOWN))
    sets = PATHS.get(f"{resource.group}/{resource.kind}", ())
    sound(read_child(thing if isinstance(thing, dict) else {}, resource, sets), sets)


@given(st.data())
def test_stored_objects_of_their_own_kind(data: st.DataObject) -> None:
    thing = data.draw(mutated(STORED))
    kinds = [one for one in WELL_KNOWN if one.kind == thing.get("kind")]
    for resource in kinds:
        sets = PATHS.get(f"{resource.group}/{resource.kind}", ())
        sound(read_child(thing, resource, sets), sets)


@given(
    st.dictionaries(st.sampled_from(KEYS), shaped(*KEYS), max_size=4), st.sampled_from(WELL_KNOWN)
)
def test_any_object(thing: dict[str, Any], resource: Any) -> None:
    sets = PATHS.get(f"{resource.group}/{resource.kind}", ())
    sound(read_child(thing, resource, sets), sets)
    suspended_by(thing, resource.group, resource.kind)


@given(JSON, st.integers(0, MAX_COUNT))
def test_any_indexes(text: Any, completions: int) -> None:
    assert 0 <= count_indexes(text, completions) <= completions


@given(st.text("0123456789,- ", max_size=40), st.integers(0, 50))
def test_any_text_of_indexes(text: str, completions: int) -> None:
    assert 0 <= count_indexes(text, completions) <= completions


@given(st.sets(st.integers(0, 60)), st.integers(0, 50))
def test_indexes_as_the_controller_writes_them(indexes: set[int], completions: int) -> None:
    text = ",".join(str(one) for one in sorted(indexes))
    assert count_indexes(text, completions) == len([one for one in indexes if one < completions])


def test_the_largest_counts() -> None:
    job = {"parallelism": MAX_COUNT, "completions": MAX_COUNT}
    thing = {"spec": {"replicatedJobs": [{"replicas": MAX_COUNT, "template": {"spec": job}}]}}
    (only,) = read(thing, "jobset.x-k8s.io", "JobSet").wants.values()
    assert only.now == MAX_COUNT
