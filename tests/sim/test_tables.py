"""Tables of kubectl get: against expectations, and cell by cell against a real API server."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcad.kube.types import Json
from mcad.sim.kinds import CRDS, Column, Kind, KindTable
from mcad.sim.serving.tables import table
from mcad.sim.serving.tables.printer import human
from tests.controlplane.controlplane import ControlPlane

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NOW_US = 1_700_000_000_000_000
CREATED = "2023-11-14T22:12:20Z"  # a minute before
KINDS = KindTable()


def _cells(kind: Kind, obj: Json) -> list[Any]:
    return table(kind, [obj], now_us=NOW_US)["rows"][0]["cells"]


def test_a_table_has_columns_rows_and_the_metadata_of_its_list() -> None:
    kind = KINDS.find("", "v1", "configmaps")
    assert kind is not None
    obj = {"metadata": {"name": "a", "resourceVersion": "7", "creationTimestamp": CREATED}}
    shown = table(kind, [obj], now_us=NOW_US, list_metadata={"resourceVersion": "9"})
    assert shown["kind"] == "Table"
    assert shown["metadata"] == {"resourceVersion": "9"}
    assert [one["name"] for one in shown["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert shown["rows"] == [
        {
            "cells": ["a", 0, "60s"],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": obj["metadata"],
            },
        }
    ]
    single = table(kind, [obj], now_us=NOW_US, include="None", with_columns=False)
    assert single["metadata"] == {"resourceVersion": "7"}
    assert single["columnDefinitions"] is None
    assert single["rows"][0]["object"] is None
    assert table(kind, [obj], now_us=NOW_US, include="Object")["rows"][0]["object"] is obj


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (605, "10m"),
        (599, "9m59s"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 60, "5h1m"),
        (8 * 3600, "8h"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert human(int(seconds * 1_000_000)) == text


def test_columns_of_a_crd_find_nothing_where_nothing_is() -> None:
    columns = (
        Column("Message", "string", ".status.conditions[1].message"),
        Column("Filtered", "string", '.status.conditions[?(@.status=="True")].message'),
        Column("Count", "integer", ".spec.count"),
        Column("Since", "date", ".status.since"),
    )
    kind = Kind("g", "v1", "things", "Thing", columns=columns, is_custom=True)
    conditions = [{"status": "False", "message": "no"}, {"status": "True", "message": "yes"}]
    full = {
        "metadata": {"name": "t"},
        "spec": {"count": 3.0},
        "status": {"conditions": conditions, "since": CREATED},
    }
    assert _cells(kind, full) == ["t", "yes", "yes", 3, "60s"]
    assert _cells(kind, {"metadata": {"name": "t"}, "spec": {}}) == ["t", None, None, None, None]
    wrong = {"metadata": {"name": "t"}, "spec": {"count": "3"}, "status": {"since": "today"}}
    assert _cells(kind, wrong) == ["t", None, None, None, "<invalid>"]


RUNS = {"ready": True, "state": {"running": {}}}
OVER: Json = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
FAILED: Json = {"state": {"terminated": {"exitCode": 3}}}
WAITS: Json = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
READY: Json = {"conditions": [{"type": "Ready", "status": "True"}]}
GATED: Json = {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}


@pytest.mark.parametrize(
    ("status", "ready", "word"),
    [
        ({"phase": "Pending"}, "0/2", "Pending"),
        ({"phase": "Pending"} | GATED, "0/2", "SchedulingGated"),
        ({"phase": "Failed", "reason": "Evicted"}, "0/2", "Evicted"),
        ({"containerStatuses": [RUNS, WAITS]}, "1/2", "ImagePullBackOff"),
        ({"containerStatuses": [RUNS, FAILED]}, "1/2", "ExitCode:3"),
        ({"containerStatuses": [OVER, RUNS]} | READY, "1/2", "Running"),
        ({"containerStatuses": [OVER, RUNS]}, "1/2", "NotReady"),
        ({"containerStatuses": [OVER, FAILED]}, "0/2", "ExitCode:3"),
        ({"containerStatuses": [OVER, OVER]}, "0/2", "Completed"),
    ],
)
def test_one_word_says_what_is_the_matter_with_a_pod(status: Json, ready: str, word: str) -> None:
    kind = KINDS.find("", "v1", "pods")
    assert kind is not None
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{}, {}]}, "status": status}
    assert _cells(kind, pod)[1:3] == [ready, word]
    going = pod | {"metadata": {"name": "p", "deletionTimestamp": CREATED}}
    assert _cells(kind, going)[2] == (word if status.get("phase") == "Failed" else "Terminating")


@pytest.mark.controlplane
def test_every_table_is_that_of_a_real_api_server(plane: ControlPlane) -> None:
    kinds = KindTable()
    for crd in plane.get(f"/apis/{CRDS[0]}/v1/{CRDS[1]}")["items"]:
        kinds.set_crd(crd)
    compared = {}
    for kind in kinds.all():
        if "list" in kind.verbs and not _has_no_columns(kind):
            compared[kind.resource.path()] = _compare(plane, kind, kind.resource.path())
    empty = [path for path, rows in compared.items() if not rows]
    assert empty == ["/apis/test.example/v1/bares"], "these were not compared"
    assert len(compared) >= 15
    print({path: rows for path, rows in compared.items() if rows})


def _has_no_columns(kind: Kind) -> bool:
    """Kinds that are neither wrapped nor looked at are shown by name and creation only."""
    shown = table(kind, [], now_us=NOW_US)["columnDefinitions"]
    return not kind.is_custom and [one["name"] for one in shown] == ["Name", "Created At"]


def _compare(plane: ControlPlane, kind: Kind, path: str) -> int:
    """Fails unless the tables are equal but for the wording of descriptions; number of rows."""
    plane.wait_for(lambda: plane.request("GET", path)[0] != 429, what=f"{path} is initialized")
    before = time.time_ns() // 1000
    theirs = plane.get(f"{path}?includeObject=Object", TABLE)
    after = time.time_ns() // 1000
    objects = [row["object"] for row in theirs["rows"] or ()]
    ours = [
        table(kind, objects, now_us=now_us, include="Object", list_metadata=theirs["metadata"])
        for now_us in _instants(before, after)
    ]
    differences = _differences(_with_ages_of(theirs, ours), theirs)
    assert differences == [], path
    return len(objects)


def _instants(before: int, after: int) -> list[int]:
    """Every second between two readings of the clock, in microseconds: an age that the server told
    in between is the age at one of them, however slow the machine is."""
    return [*range(before, after, 1_000_000), after]


def _with_ages_of(theirs: Json, tables: list[Json]) -> Json:
    """Our table, each cell of the instant at which it says the same as theirs, if there is one: the
    server reads its clock for each cell anew."""
    ours = tables[0]
    for number, row in enumerate(theirs["rows"] or ()):
        told = zip(*(one["rows"][number]["cells"] for one in tables), strict=True)
        ours["rows"][number]["cells"] = [
            next((one for one in cells if _agree(one, cell)), cells[0])
            for cells, cell in zip(told, row["cells"], strict=False)
        ]
    return ours


def _agree(mine: object, other: object) -> bool:
    return type(mine) is type(other) and mine == other


def _differences(ours: Json, theirs: Json) -> list[Any]:
    head = {*ours, *theirs} - {"columnDefinitions", "rows"}
    found: list[Any] = [
        (key, ours.get(key), theirs.get(key)) for key in head if ours.get(key) != theirs.get(key)
    ]
    columns = [
        [{**one, "description": ""} for one in table["columnDefinitions"]]
        for table in (ours, theirs)
    ]
    if columns[0] != columns[1]:
        found.append(columns)
    if (ours["rows"] is None) != (theirs["rows"] is None):
        found.append(("rows", ours["rows"], theirs["rows"]))
    for mine, other in zip(ours["rows"] or (), theirs["rows"] or (), strict=True):
        alike = map(_agree, mine["cells"], other["cells"])
        if mine != other or not all(alike):
            found.append((mine["cells"], other["cells"], mine.get("conditions")))
    return found
