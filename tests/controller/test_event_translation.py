"""What the API server tells, as events of the core: what is passed over, and what waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from mcad.api import labels, projections
from mcad.api.appwrapper import parse
from mcad.api.config import Config
from mcad.api.wire import to_json
from mcad.controller.appwrapper_intake import AppWrapperIntake
from mcad.controller.event_translation import EventTranslator, Readers
from mcad.controller.mirror import Mirror
from mcad.controller.preflight import Preflight, Unfit
from mcad.controller.served_kinds import Kinds
from mcad.core.events import AppWrapperSeen, ChildSeen, Event, NodeGone, NodeSeen
from mcad.kube.document import Document, Identity
from mcad.kube.errors import BadAnswer
from mcad.kube.kinds import APPWRAPPERS
from tests import manifests
from tests.controller.clock import LoopClock
from tests.controller.test_edited import CONFIG_MAPS, SERVED

Json = dict[str, Any]


class Told:
    """EventTranslator, and the events that come of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        readers = Readers(lambda obj: parse(obj, SERVED))
        self.sightings = EventTranslator(
            Mirror(), readers, self.events.append, lambda pod, owner: None, lambda uid: None
        )

    def of(self, kind: type[Event]) -> list[Any]:
        return [one for one in self.events if isinstance(one, kind)]


@pytest.fixture
def told() -> Told:
    return Told()


def node(uid: str) -> Json:
    return {
        "metadata": {"name": "n", "uid": uid, "resourceVersion": "1"},
        "status": {"allocatable": {"cpu": "1"}},
    }


def wrapper(version: str, **status: Any) -> Json:
    obj = manifests.generic("a", manifests.config_map("c"))
    obj["metadata"] |= {"uid": "u-a", "resourceVersion": version, "generation": int(version)}
    return obj | {"status": status}


def item(uid: str) -> Json:
    owner = {
        "apiVersion": f"{labels.GROUP}/v1beta2",
        "kind": "AppWrapper",
        "name": "a",
        "uid": "u-a",
        "controller": True,
    }
    marks = {labels.APPWRAPPER_UID: "u-a", labels.ATTEMPT: "1", labels.ITEM: "0"}
    metadata = {"name": "c", "namespace": "default", "uid": uid, "resourceVersion": "5"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata | {"labels": marks, "ownerReferences": [owner]},
    }


def test_a_node_that_was_made_anew_is_not_gone(told: Told) -> None:
    """Its successor may be told of before its own end is."""
    told.sightings.node_seen(told.sightings.read_node(node("old")))
    told.sightings.node_seen(told.sightings.read_node(node("new")))
    told.sightings.node_gone("old")
    assert told.of(NodeGone) == []
    told.sightings.node_gone("new")
    assert len(told.of(NodeSeen)) == 2
    assert [one.name for one in told.of(NodeGone)] == ["n"]


def test_what_precedes_the_known_version_is_passed_over(told: Told) -> None:
    told.sightings.appwrapper_seen(wrapper("8"))
    told.sightings.appwrapper_seen(wrapper("7"))
    assert len(told.of(AppWrapperSeen)) == 1
    told.sightings.appwrapper_seen(wrapper("9"))
    assert len(told.of(AppWrapperSeen)) == 2


@pytest.mark.parametrize("gone", [False, True])
def test_an_object_waits_for_its_appwrapper_while_it_exists(gone: bool, told: Told) -> None:
    told.sightings.object_seen(CONFIG_MAPS, item("u-c"))
    if gone:
        told.sightings.object_gone("u-c")
    told.events.clear()
    told.sightings.appwrapper_seen(wrapper("8"))
    assert len(told.of(ChildSeen)) == (0 if gone else 1)


def test_one_that_cannot_be_read_does_not_hide_the_others(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        identity = Identity("broken", "u-broken", "1", "default")

        def json(self) -> Json:
            raise BadAnswer("no JSON")

    arrivals = AppWrapperIntake(Mirror(), told.sightings, None, None, None)
    arrivals.seen(Broken())  # type: ignore[arg-type]
    good = Document(Raw(to_json(wrapper("8"))), APPWRAPPERS, projections.APPWRAPPER)
    arrivals.seen(good)
    assert len(told.of(AppWrapperSeen)) == 1
    assert "default/broken" in caplog.text


def test_the_crds_of_kinds_that_may_be_wrapped_are_of_concern() -> None:
    kinds = Kinds(None, Config())  # type: ignore[arg-type]  # discovery is not asked
    assert kinds.concerns("rayclusters.ray.io")
    assert kinds.concerns("appwrappers.workload.codeflare.dev")
    assert not kinds.concerns("certificates.cert-manager.io")


@pytest.mark.parametrize("coexist", [False, True])
def test_another_controller_at_work_is_a_reason_to_stop(coexist: bool) -> None:
    client: Any = SimpleNamespace(clock=LoopClock())
    preflight = Preflight(client, Config(), coexist=coexist)
    if coexist:
        preflight._met("another controller is installed")
        return
    with pytest.raises(Unfit, match="both would manage the same AppWrappers"):
        preflight._met("another controller is installed")
