"""The golden files of tests/sim, asked for anew: what a real kube-apiserver says of each case.

A file keeps what is given; what is stored, and what is refused, is the server's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mcad.sim.kinds import BUILTIN
from tests.controlplane.controlplane import ControlPlane

Json = dict[str, Any]
Post = Callable[[Json], tuple[int, Json]]

GOLDEN = Path(__file__).parents[1] / "sim" / "golden"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "golden.example.com"
KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTIN}
_UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def renewed(plane: ControlPlane) -> Iterator[tuple[Path, str]]:
    """Every file with its new text; the server must not have been asked before."""
    plane.create_namespace("golden")
    yield _written("validation", _validation(plane, _read("validation")))
    yield _written("defaults", [_stored(plane, case) for case in _read("defaults")])
    schema = _read("schema")
    post = _custom(plane, "things", "Thing", schema["schema"])
    schema["cases"] = [_judged(post, case) for case in schema["cases"]]
    yield _written("schema", schema)
    cel = _read("cel")
    post = _custom(plane, "rules", "Rule", cel["schema"])
    cel["create"] = [_judged(post, case) for case in cel["create"]]
    yield _written("cel", cel)


def _read(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def _written(name: str, content: Any) -> tuple[Path, str]:
    """One case on a line, so that a change can be read."""

    def lines(value: Any) -> str:
        if not isinstance(value, list):
            return json.dumps(value)
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"

    text = lines(content)
    if isinstance(content, dict):
        text = "{\n" + ",\n".join(f'"{key}": {lines(one)}' for key, one in content.items()) + "\n}"
    return GOLDEN / f"{name}.json", f"{text}\n"


def _causes(answer: Json) -> list[list[str]]:
    """Each fault once, without the diffs that Go appends, and without what was drawn."""
    listed = (answer.get("details") or {}).get("causes") or []
    found = {
        (one["reason"], _UID.sub("UID", one["message"].partition("\n")[0]), one["field"])
        for one in listed
    }
    return sorted(map(list, found))


def _create(plane: ControlPlane, obj: Json, **params: str) -> tuple[int, Json]:
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    # The event is about something in the namespace default, so it has to be there as well.
    namespace = "default" if obj["kind"] == "Event" else "golden"
    path = kind.resource.path(namespace if kind.namespaced else None)
    query = "&".join(f"{key}={value}" for key, value in params.items())
    reply: tuple[int, Json] = plane.request("POST", f"{path}?{query}", obj)
    return reply


def _validation(plane: ControlPlane, content: Json) -> Json:
    new = []
    for case in content["create"]:
        if case["given"]["metadata"].get("generateName"):
            new.append(case)  # the answer names what was drawn
            continue
        _, answer = _create(plane, case["given"], dryRun="All")
        new.append(case | {"causes": _causes(answer)})
    return content | {"create": new}  # changes are of objects as they were stored once


def _stored(plane: ControlPlane, case: Json) -> Json:
    status, answer = _create(plane, case["given"], dryRun="All")
    assert status == 201, f"{case['given']}: {answer}"
    return case | {"stored": _like(case["stored"], answer)}


def _like(part: Any, whole: Any) -> Any:
    """The fields of the stored object that the file has (see test_builtin.py)."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return {key: _like(one, whole[key]) for key, one in part.items() if key in whole}
    if isinstance(part, list) and isinstance(whole, list) and len(part) == len(whole):
        return [_like(one, other) for one, other in zip(part, whole, strict=True)]
    return whole


def _custom(plane: ControlPlane, plural: str, kind: str, schema: Json) -> Post:
    """Install a CRD with that schema; what is returned creates objects of it, dry."""
    version = {"name": "v1", "served": True, "storage": True}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }
    status, answer = plane.request("POST", CRDS, crd)
    assert status == 201, answer
    path = f"/apis/{GROUP}/v1/namespaces/golden/{plural}"
    plane.wait_for(lambda: plane.request("GET", path)[0] == 200, what=f"{kind} to be served")

    def post(case: Json) -> tuple[int, Json]:
        head = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "t"}}
        body = head | {"spec": case["spec"]}
        reply: tuple[int, Json] = plane.request("POST", f"{path}?dryRun=All", body)
        return reply

    return post


def _judged(post: Post, case: Json) -> Json:
    """A case with what the server refuses, or stores."""
    status, answer = post(case)
    told = {"causes": _causes(answer)} if "causes" in case or status != 201 else {}
    stored = {"stored": answer["spec"]} if "stored" in case and status == 201 else {}
    return case | told | stored
