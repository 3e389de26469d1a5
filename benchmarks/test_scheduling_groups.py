"""What the benchmark of scheduling groups looks for, on objects and CRDs that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.scheduling_groups import (
    FIELD,
    KINDS,
    SIZE,
    Finding,
    Kind,
    count_field,
    read_crds,
    widen,
)
from mcad.api.podsets import infer

Json = dict[str, Any]


def pod_spec(*more: str) -> Json:
    return {"type": "object", "properties": {name: {} for name in ("containers", *more)}}


def schema(*more: str) -> Json:
    """Of a kind with two pod templates, one of them in a list."""
    template = {"properties": {"spec": pod_spec("tolerations", *more)}}
    listed = {"type": "array", "items": {"properties": {"template": template}}}
    return {"openAPIV3Schema": {"properties": {"head": template, "workers": listed}}}


def crd(found: Json) -> Json:
    versions = [{"name": "v1", "schema": found}]
    return {"spec": {"names": {"kind": "Widget"}, "versions": versions}}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title or kind.name)
def test_every_template_of_a_kind_names_its_gang_and_there_are_three_pods(kind: Kind) -> None:
    made = kind.objects()
    group = kind.api.rpartition("/")[0]
    found = [pods for one in made for pods in infer(one, group, kind.name).found]
    named = [one for one in found if FIELD in one.template["spec"]]
    assert {one.template["spec"][FIELD]["podGroupName"] for one in named} == {kind.gang}
    assert sum(one.replicas for one in named) == SIZE
    assert count_field(made) == len(named)


def test_a_field_in_metadata_is_none() -> None:
    kept = {"spec": {"pods": [{FIELD: {"podGroupName": "a"}}]}}
    assert count_field(kept) == 1
    assert count_field({"metadata": {"managedFields": [{f"f:{FIELD}": {}, FIELD: {"a": 1}}]}}) == 0
    assert count_field({"spec": {FIELD: None}}) == 0


def test_crds_are_read_and_widened(tmp_path: Path) -> None:
    file = tmp_path / "crd.yaml"
    found = crd(schema())
    for expected in ("0 of 2", "2 of 2"):
        file.write_text(yaml.safe_dump(found))
        assert list(read_crds([file])) == [f"Widget v1: {expected} pod specs have {FIELD}"]
        widen(found)


def test_widening_leaves_other_schemas_and_known_fields_alone() -> None:
    found = schema(FIELD)
    before = yaml.safe_dump(found)
    widen(found)
    assert yaml.safe_dump(found) == before
    other = {"openAPIV3Schema": {"properties": {"spec": pod_spec()}}}
    widen(other)
    assert other == {"openAPIV3Schema": {"properties": {"spec": pod_spec()}}}


@pytest.mark.parametrize(
    ("links", "bound", "later", "row"),
    [
        ({"JobSet": True, "Job": True, "Pod": True}, 0, 3, "yes | yes | 0, 3 of 3 | yes | -"),
        ({"JobSet": True, "Job": False, "Pod": False}, 2, 3, "yes | no | 2, 3 of 3 | no | Job"),
        ({"JobSet": False, "Job": False, "Pod": False}, 2, 3, "no | no | 2, 3 of 3 | no | JobSet"),
        ({"JobSet": True, "Pod": True}, 0, 0, "yes | yes | 0, 0 of 3 | no | -"),
    ],
)
def test_a_row_says_where_the_field_was_lost(
    links: dict[str, bool], bound: int, later: int, row: str
) -> None:
    assert Finding(links, SIZE, bound, later).row("JobSet") == f"| JobSet | {row} |"
