"""Tables of kubectl get: against expectations, and cell by cell against a real API server."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mcad.sim.kinds import CRDS, Column, Kind, KindTable
from mcad.sim.serving.tables import table
from mcad.sim.serving.tables.printer import human
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.sim import real
from tests.sim.furnished import create_all

Json = dict[str, Any]
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
    assert _cells(kind, full) == ["t", "yes", None, 3, "60s"]
    assert _cells(kind, {"metadata": {"name": "t"}, "spec": {}}) == ["t", None, None, None, None]
    wrong = {"metadata": {"name": "t"}, "spec": {"count": "3"}, "status": {"since": "today"}}
    assert _cells(kind, wrong) == ["t", None, None, None, "<invalid>"]


# A real API server


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with controlplane_or_skip() as plane:
        plane.add_node("n1", cpu="8", memory="32Gi", pods=110)
        create_all(plane)
        yield plane


@pytest.mark.controlplane
def test_every_table_is_that_of_a_real_api_server(plane: ControlPlane) -> None:
    kinds = KindTable()
    for crd in real.get(plane, f"/apis/{CRDS[0]}/v1/{CRDS[1]}").json()["items"]:
        kinds.set_crd(crd)
    compared = {}
    for kind in kinds.all():
        if "list" in kind.verbs and not _has_no_columns(kind):
            compared[kind.resource.path()] = _compare(plane, kind, kind.resource.path())
    empty = [path for path, rows in compared.items() if not rows]
    assert empty == ["/apis/test.example/v1/bares"], "these were not compared"
    assert len(compared) >= 15
    print({path: rows for path, rows in compared.items() if rows})


@pytest.mark.controlplane
def test_pods_in_any_state_are_shown_like_a_real_api_server_shows_them(
    plane: ControlPlane,
) -> None:
    chance = random.Random(4)
    for number in range(200):
        _create_odd_pod(plane, f"odd-{number}", chance)
    kind = KINDS.find("", "v1", "pods")
    assert kind is not None
    path = "/api/v1/namespaces/odd/pods"
    assert _compare(plane, kind, path) >= 200
    words = {row["cells"][2] for row in real.get(plane, path, TABLE).json()["rows"]}
    assert len(words) > 15, words


def _has_no_columns(kind: Kind) -> bool:
    """Kinds that nobody wraps or looks at are shown by name and creation only."""
    shown = table(kind, [], now_us=NOW_US)["columnDefinitions"]
    return not kind.is_custom and [one["name"] for one in shown] == ["Name", "Created At"]


def _compare(plane: ControlPlane, kind: Kind, path: str) -> int:
    """Fails unless the tables are equal but for the wording of descriptions; number of rows."""
    plane.wait_for(lambda: real.get(plane, path).status != 429, what=f"{path} is initialized")
    before = time.time()
    answer = real.get(plane, f"{path}?includeObject=Object", TABLE)
    after = time.time()
    theirs = answer.json()
    assert answer.status == 200, (path, theirs)
    objects = [row["object"] for row in theirs["rows"] or ()]
    differences: list[Any] = []
    for step in range(21):  # the server read its clock somewhere in between
        now_us = int((before + (after - before) * step / 20) * 1_000_000)
        ours = table(
            kind, objects, now_us=now_us, include="Object", list_metadata=theirs["metadata"]
        )
        differences.append(_differences(ours, theirs))
        if not differences[-1]:
            return len(objects)
    raise AssertionError((path, min(differences, key=len)))


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
        if mine != other or [type(a) for a in mine["cells"]] != [type(a) for a in other["cells"]]:
            found.append((mine["cells"], other["cells"], mine.get("conditions")))
    return found


# Pods in states that no kubelet would ever report


def _create_odd_pod(plane: ControlPlane, name: str, chance: random.Random) -> None:
    pods = "/api/v1/namespaces/odd/pods"
    if name == "odd-0":
        plane.create_namespace("odd")
        plane.wait_for(
            lambda: plane.request("GET", "/api/v1/namespaces/odd/serviceaccounts/default")[0] == 200
        )
    main = [{"name": f"c{number}", "image": "i"} for number in range(chance.choice([1, 1, 2, 3]))]
    gates = [{"conditionType": one} for one in chance.sample(["a.b/c", "d.e/f"], 2)]
    spec = {
        "schedulerName": "nobody",
        "containers": main,
        "readinessGates": gates[: chance.choice([0, 0, 1, 2])],
        "schedulingGates": [{"name": "x.y/z"}] if chance.random() < 0.1 else [],
    }
    metadata = {"name": name, "finalizers": ["test.example/hold"]}
    status, made = plane.request("POST", pods, {"metadata": metadata, "spec": spec})
    assert status == 201, made
    made["status"] |= _odd_status(main, chance)
    status, answer = plane.request("PUT", f"{pods}/{name}/status", made)
    assert status == 200, answer
    if chance.random() < 0.15:
        plane.request("DELETE", f"{pods}/{name}")


def _odd_status(main: list[Json], chance: random.Random) -> Json:
    phase = chance.choice(["Pending", "Running", "Running", "Running", "Succeeded", "Failed"])
    kinds = ["PodScheduled", "Initialized", "Ready", "a.b/c", "d.e/f"]
    conditions: list[Json] = [
        {"type": kind, "status": chance.choice(["True", "False", "Unknown"])}
        for kind in chance.sample(kinds, chance.randrange(6))
    ]
    for one in conditions:
        if one["type"] == "PodScheduled" and chance.random() < 0.3:
            one |= {"reason": "SchedulingGated", "status": "False"}
    status: Json = {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": [_odd_container(one, chance) for one in main],
    }
    if chance.random() < 0.2:
        status["reason"] = chance.choice(["Evicted", "NodeLost", "Preempting"])
    if chance.random() < 0.3:
        status["podIPs"] = [{"ip": "10.0.0.9"}, {"ip": "fd00::1"}]
        status["podIP"] = "10.0.0.9"
    if chance.random() < 0.2:
        status["nominatedNodeName"] = "n1"
    return status


def _odd_container(container: Json, chance: random.Random) -> Json:
    reason = chance.choice(["", "Error", "Completed", "OOMKilled"])
    ended = {
        "exitCode": chance.choice([0, 0, 1, 137]),
        "reason": reason,
        "finishedAt": f"2026-0{chance.randrange(1, 9)}-01T00:00:00Z",
    }
    waiting = {
        "reason": chance.choice(["", "PodInitializing", "ContainerCreating", "ImagePullBackOff"])
    }
    state = chance.choice([{"running": {}}, {"running": {}}, {"terminated": ended}])
    state = chance.choice([state, state, {"waiting": waiting}, {}])
    last = {"terminated": ended} if chance.random() < 0.3 else {}
    return {
        "name": container["name"],
        "image": "i",
        "imageID": "",
        "ready": chance.random() < 0.6,
        "started": chance.choice([True, False, None]),
        "restartCount": chance.choice([0, 0, 1, 4]),
        "state": state,
        "lastState": last,
    }
