"""Rules of built-in kinds against the refusals of kube-apiserver 1.36 (golden/validation.json).

Two things in its words cannot be had: it prints Go structs, and it appends diffs. Of the former the
text after the value is compared; the latter are not in the golden file. Each fault counts once.
"""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcad.sim.failures import Cause
from mcad.sim.kinds import BUILTIN, Kind
from mcad.sim.objects import builtin
from mcad.sim.objects.decoding import decode
from mcad.sim.objects.defaults import default
from mcad.sim.objects.jobdefaults import job_defaults
from mcad.sim.objects.validation import validate_create, validate_update
from mcad.sim.patching import merge

GOLDEN = json.loads((Path(__file__).parent / "golden" / "validation.json").read_text())
KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTIN}
UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SOME_UID = "00000000-0000-0000-0000-000000000000"
STRUCT = re.compile(r"^Invalid value: (\{.*\}|null)(?=: )", re.DOTALL)


def prepared(given: dict[str, Any]) -> tuple[Kind, dict[str, Any]]:
    kind = KINDS[given["apiVersion"], given["kind"]]
    struct = builtin.type_of(kind)
    assert struct is not None
    obj = default(kind, decode(given, struct)[0])
    if kind.kind == "Job" and "uid" not in obj["metadata"]:
        obj["metadata"]["uid"] = SOME_UID
        obj = job_defaults(obj)
    return kind, obj


def comparable(reason: str, message: str, field: str) -> tuple[str, str, str]:
    text = UID.sub("UID", STRUCT.sub("Invalid value: {}", message))
    return reason, text, field


def ours(causes: list[Cause]) -> list[tuple[str, str, str]]:
    return sorted({comparable(one.reason, one.message, one.field) for one in causes})


def theirs(case: dict[str, Any]) -> list[tuple[str, str, str]]:
    return sorted({comparable(*cause) for cause in case["causes"]})


def label(case: dict[str, Any]) -> str:
    return f"{case['given']['kind']}-{json.dumps(case['given'].get('spec', case['given']))[:90]}"


@pytest.mark.parametrize("case", GOLDEN["create"], ids=label)
def test_a_new_object_is_judged_as_by_kube_apiserver(case: dict[str, Any]) -> None:
    kind, obj = prepared(case["given"])
    before = copy.deepcopy(obj)
    assert ours(validate_create(kind, obj)) == theirs(case)
    assert obj == before


@pytest.mark.parametrize(
    "case", GOLDEN["update"], ids=lambda case: f"{case['kind'][1]}-{json.dumps(case['patch'])[:80]}"
)
def test_a_change_is_judged_as_by_kube_apiserver(case: dict[str, Any]) -> None:
    given = case["old"] | dict(zip(("apiVersion", "kind"), case["kind"], strict=True))
    kind, old = prepared(given)
    _, new = prepared(merge(given, case["patch"]))
    assert ours(validate_update(kind, new, old)) == theirs(case)
