"""No object that an API server can store makes the reading of it raise."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.children import child_item, read_child
from mcad.api.manifest import render
from mcad.api.status import read_status
from tests.api.builders import CATALOG, generic, v1beta1, v1beta2
from tests.api.strategies import JSON, mutated, shaped
from tests.api.test_podsets import KINDS, component

OBJECTS = [thing for thing, _ in KINDS.values()]
WRAPPED = [v1beta1(one) for one in OBJECTS] + [v1beta2(one) for one in OBJECTS]
WRAPPED += [
    v1beta1(
        generic(
            OBJECTS[1],
            custompodresources=[
                {"replicas": 2, "requests": {"cpu": 1}, "limits": {"memory": "1Gi"}}
            ],
            completionstatus="Complete",
        ),
        priority=3,
        priorityslope=0.5,
        schedulingSpec={"minAvailable": 1, "requeuing": {"timeInSeconds": 3}},
    ),
    v1beta2(
        component(
            OBJECTS[1],
            {"path": "template.spec.template", "replicas": 2},
            podSetInfos=[{"labels": {"a": "b"}, "tolerations": [{"key": "k"}]}],
        ),
        suspend=True,
    ),
]
KEYS = (
    *("metadata", "spec", "status", "resources", "components", "GenericItems", "generictemplate"),
    *("template", "apiVersion", "kind", "name", "podSets", "path", "custompodresources"),
)


def sound(parsed: Parsed) -> None:
    """What holds for every outcome; items without a fault can be created."""
    work = parsed.workload
    assert work.problem == (parsed.problems[0] if parsed.problems else None)
    assert len(work.items) == len(parsed.manifests)
    assert all(0 <= one.item < len(work.items) for one in work.sets)
    assert all(value > 0 for one in work.sets for _, value in one.request)
    for problem in parsed.problems:
        assert problem.field
        assert problem.message
    if work.problem is None:
        for index, manifest in enumerate(parsed.manifests):
            assert isinstance(json.loads(render(manifest, work, index, 1)), dict)
    hash(work)  # a list that slipped into a record would show here


@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(KEYS), shaped(*KEYS), max_size=5))
def test_arbitrary_objects(obj: dict[str, Any]) -> None:
    sound(parse(obj, CATALOG))


@settings(max_examples=600)
@given(mutated(WRAPPED))
def test_mutated_manifests(obj: Any) -> None:
    sound(parse(obj, CATALOG))


@settings(max_examples=300)
@given(mutated(OBJECTS), st.sampled_from(WELL_KNOWN))
def test_mutated_live_objects(obj: Any, resource: Any) -> None:
    child_item(obj)
    sets = parse(v1beta1(obj), CATALOG).workload.sets
    assert len(read_child(obj, resource, sets).wants) == len(sets)


@given(JSON)
def test_arbitrary_status(value: Any) -> None:
    read_status(value)
