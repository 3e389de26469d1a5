"""Objects of an attempt are read by the pod sets of that attempt, however the spec was edited."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.api import labels
from mcad.api.catalog import Resource, StaticCatalog
from mcad.controller.mirror import Mirror
from mcad.controller.sightings import Sightings
from mcad.core.events import ChildSeen, Event
from tests import manifests

Json = dict[str, Any]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
SERVED = StaticCatalog.of([CONFIG_MAPS, DEPLOYMENTS], [("", "configmaps"), ("apps", "deployments")])
ATTEMPT = 2


def _ref(resource: Resource, name: str) -> Json:
    return {
        "group": resource.group,
        "version": resource.version,
        "resource": resource.resource,
        "kind": resource.kind,
        "namespace": "default",
        "name": name,
    }


def _edited(*templates: Json) -> Json:
    """An AppWrapper that dispatched a ConfigMap and a Deployment and lists these now."""
    obj = manifests.generic("a", *templates)
    obj["metadata"] |= {"namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 2}
    inventory = [_ref(CONFIG_MAPS, "c"), _ref(DEPLOYMENTS, "d")]
    record = {"attempt": ATTEMPT, "epoch": 1, "phase": "dispatched", "inventory": inventory}
    return obj | {"status": {"state": "Running", "dispatch": record}}


def _live(attempt: int, item: int) -> Json:
    """The Deployment as somebody has scaled it."""
    obj = manifests.deployment("d", 5)
    owner = {"apiVersion": f"{labels.GROUP}/v1beta1", "kind": "AppWrapper", "name": "a"}
    obj["metadata"] |= {
        "uid": "d",
        "namespace": "default",
        "labels": {
            labels.APPWRAPPER_UID: "u",
            labels.ATTEMPT: str(attempt),
            labels.ITEM: str(item),
        },
        "ownerReferences": [owner | {"uid": "u", "controller": True}],
    }
    return obj


@pytest.mark.parametrize(
    "templates",
    [
        pytest.param((manifests.config_map("c"), manifests.deployment("d", 3)), id="as it was"),
        pytest.param((manifests.deployment("d", 3),), id="the first is dropped"),
        pytest.param((manifests.deployment("d", 3), manifests.config_map("c")), id="swapped"),
        pytest.param(
            (manifests.deployment("e", 3), manifests.deployment("d", 3)), id="the first is replaced"
        ),
    ],
)
def test_how_many_pods_an_item_wants_is_read_by_its_place_in_the_inventory(
    templates: tuple[Json, ...],
) -> None:
    told: list[Event] = []
    sightings = Sightings(Mirror(), lambda: SERVED, told.append, lambda pod, owner: None)
    sightings.appwrapper_seen(_edited(*templates))
    sightings.object_seen(DEPLOYMENTS, _live(ATTEMPT, 1))
    (seen,) = [event.child for event in told if isinstance(event, ChildSeen)]
    assert (seen.item, seen.wants) == (1, (5,))


def test_an_object_of_a_later_attempt_is_read_by_the_spec() -> None:
    """The record that came with the edit is that of the attempt before."""
    told: list[Event] = []
    sightings = Sightings(Mirror(), lambda: SERVED, told.append, lambda pod, owner: None)
    sightings.appwrapper_seen(_edited(manifests.deployment("d", 3)))
    sightings.object_seen(DEPLOYMENTS, _live(ATTEMPT + 1, 0))
    (seen,) = [event.child for event in told if isinstance(event, ChildSeen)]
    assert (seen.item, seen.wants) == (0, (5,))
