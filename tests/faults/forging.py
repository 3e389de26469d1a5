"""Objects that say that they are an AppWrapper's and are not: its labels, its uid, its attempt, its
owner reference, under another name or in another namespace.

Their pods ask for no CPU, so what they move they move by what they say (ADR 35). The tests know
them by an annotation, which no dispatcher reads.
"""

from __future__ import annotations

from random import Random
from typing import Any

from mcad.api import labels
from mcad.kube.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS
from mcad.kube.resource import Resource
from tests import manifests
from tests.faults.scenarios import items_of

Json = dict[str, Any]
JOBS = Resource("batch", "v1", "jobs", "Job")
MARK = {"example.com/forged": "true"}
CPU = "0"


def is_forged(obj: Json) -> bool:
    """Whether it is one of these, or was made for one of these."""
    return MARK.items() <= (obj["metadata"].get("annotations") or {}).items()


def forge(rng: Random, about: Json, namespace: str, number: int) -> tuple[Resource, Json]:
    """An object that says that it is an item of the AppWrapper."""
    meta = about["metadata"]
    is_elsewhere = namespace != meta["namespace"]
    names = [one["metadata"]["name"] for one in items_of(about) if is_elsewhere]
    name = rng.choice((f"forged-{number}", *names))
    attempt = ((about.get("status") or {}).get("dispatch") or {}).get("attempt", 1)
    marks = {
        labels.APPWRAPPER: meta["name"],
        labels.APPWRAPPER_UID: meta["uid"],
        labels.ATTEMPT: str(max(1, attempt + rng.choice((-1, 0, 0, 0, 1)))),
        labels.ITEM: str(rng.randint(0, 1)),
    }
    kind, made = rng.choice(
        (
            (CONFIG_MAPS, manifests.config_map(name)),
            (PODS, manifests.pod(name, CPU)),
            (PODS, manifests.pod(name, CPU, 3)),
            (PODS, manifests.failing(name, CPU, 3)),
            (DEPLOYMENTS, manifests.deployment(name, 2, CPU)),
            (JOBS, manifests.job(name, 1, CPU, 3)),
        )
    )
    _mark(made, marks)
    template = made.get("spec", {}).get("template")
    if template is not None:
        _mark(template, marks)
    if rng.random() < 0.7:
        made["metadata"]["ownerReferences"] = [_owner(about)]
    return kind, made


def _mark(obj: Json, marks: Json) -> None:
    meta = obj.setdefault("metadata", {})
    meta["labels"] = meta.get("labels", {}) | marks
    meta["annotations"] = dict(MARK)


def _owner(about: Json) -> Json:
    meta = about["metadata"]
    return {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
