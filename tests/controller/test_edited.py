"""Objects of an attempt are read by the pod sets of that attempt, however the spec was edited."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.api import labels
from mcad.api.appwrapper import parse
from mcad.api.catalog import Resource, StaticCatalog
from mcad.controller.event_translation import EventTranslator, Readers
from mcad.controller.mirror import Mirror
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import ChildSeen, Event
from mcad.core.state.model import Child, Wanted
from mcad.core.state.settings import Settings
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
    """The Deployment after a user has scaled it."""
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
    told = _told(_edited(*templates), _live(ATTEMPT, 1))
    assert (told.item, told.wants) == (1, (Wanted(5),))


def test_what_was_dispatched_is_known_although_the_spec_lists_it_no_more() -> None:
    """As long as the process lives, that is; the status does not say what an item demanded."""
    before = _edited(manifests.config_map("c"), manifests.deployment("d", 3))
    before["status"]["dispatch"]["payloadSHA256"] = "that of the edit before"
    after = _edited(manifests.config_map("c"))
    after["metadata"] |= {"resourceVersion": "8", "generation": 3}
    assert _told(before, after, _live(ATTEMPT, 1)).wants == (Wanted(5),)


def _told(*seen: Json) -> Child:
    """What is told of the last of these, which is the Deployment."""
    dispatcher, told = Dispatcher(Settings()), []

    def feed(event: Event) -> None:
        told.append(event)
        dispatcher.step(event, 1_800_000_000_000_000)

    judged = dispatcher.cluster.judged
    sightings = EventTranslator(
        Mirror(), Readers(lambda obj: parse(obj, SERVED)), feed, lambda pod, owner: None, judged
    )
    for obj in seen[:-1]:
        sightings.appwrapper_seen(obj)
    sightings.object_seen(DEPLOYMENTS, seen[-1])
    (one,) = [event.child for event in told if isinstance(event, ChildSeen)]
    return one
