"""Requests for nodes: what is written, in which order, and what the core hears of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcad.api import labels
from mcad.api.scale_up.templates import Wanted
from mcad.api.wire import format_instant
from mcad.controller.scale_ups import ScaleUps
from mcad.core.commands import Command, CreateItem, RequestScaleUp, WithdrawScaleUp
from mcad.core.events import (
    Event,
    KindWatched,
    PodSeen,
    ScaleUpGone,
    ScaleUpRefused,
    ScaleUpSeen,
)
from mcad.core.state.scale_up import ScaleUpState
from mcad.kube.kinds import EVENTS, POD_TEMPLATES
from mcad.kube.port import Request, Response
from mcad.kube.resource import Resource
from tests.controller.test_runtime import KINDS, Rig, add_appwrapper, add_node
from tests.fakeapi import FakeApi, content, refuse

Json = dict[str, Any]
GROUP = "autoscaling.x-k8s.io"
REQUESTS = Resource(GROUP, "v1", "provisioningrequests", "ProvisioningRequest")
BUFFERS = Resource(GROUP, "v1beta1", "capacitybuffers", "CapacityBuffer")
TABLE = (*KINDS, POD_TEMPLATES, EVENTS)
NAME = f"a-{labels.short_hash('uid-a')}-1"
TEMPLATE = {"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}}
WHERE = Wanted(TEMPLATE, 1).placement
REQUEST = f"{NAME}-{WHERE}"
ASK = RequestScaleUp("uid-a", 1, ((0, 0, 1),))
WITHDRAW = WithdrawScaleUp("uid-a", 1)


_OF_REQUESTS = (RequestScaleUp, WithdrawScaleUp)
_ABOUT_REQUESTS = (ScaleUpSeen, ScaleUpGone, ScaleUpRefused)


class Asking(Rig):
    """A controller with one AppWrapper that has no room. What it asks for, the test commands: the
    core's own commands about requests are left out."""

    def __init__(
        self, *kinds: Resource, server: FakeApi | None = None, via: str = "auto", **settings: Any
    ) -> None:
        is_first = server is None
        server = server or FakeApi(served=(*TABLE, *kinds))
        if is_first:
            add_node(server, "1")
            add_appwrapper(server, "a", "2")
        super().__init__(server=server, scaleUp={"via": via}, **settings)
        step = self.controller.dispatcher.step

        def without_requests(event: Event, now: int) -> tuple[Command, ...]:
            return tuple(one for one in step(event, now) if not isinstance(one, _OF_REQUESTS))

        self.controller.dispatcher.step = without_requests  # type: ignore[method-assign]

    async def do(self, *commands: Command, seconds: float = 0.3) -> list[Event]:
        """Execute commands; returns what the core has heard of requests."""
        self.events.clear()
        for command in commands:
            self.controller.executor.submit(command)
        return await self.heard(seconds)

    async def heard(self, seconds: float = 0.3) -> list[Event]:
        await self.clock.advance(seconds)
        return [one for one in self.events if isinstance(one, _ABOUT_REQUESTS)]

    def say(self, plural: str, name: str, *conditions: tuple[str, str]) -> None:
        """What the autoscaler writes: conditions that have just changed."""
        at = format_instant(self.client.clock.now_us())

        def change(obj: Json) -> None:
            obj["status"] = {
                "conditions": [
                    {
                        "type": one,
                        "status": status,
                        "message": f"{one} is {status}",
                        "lastTransitionTime": at,
                    }
                    for one, status in conditions
                ]
            }

        self.server.change(plural, name, change)


def sent(server: FakeApi) -> list[str]:
    """The writes about requests: method, plural, and name."""
    found = []
    for one in server.requests:
        path = one.path.split("/")
        body = content(one) if one.method == "POST" else {}
        if one.method == "POST" and path[-1] in _ABOUT:
            found.append(f"POST {path[-1]} {body['metadata']['name']}")
        elif one.method == "DELETE" and path[-2] in _ABOUT:
            found.append(f"DELETE {path[-2]} {path[-1]}")
    return found


_ABOUT = ("podtemplates", "provisioningrequests", "capacitybuffers", "pods")
CREATION = [f"POST podtemplates {NAME}-0", f"POST provisioningrequests {REQUEST}"]


async def test_a_request_is_created_after_its_templates_and_followed() -> None:
    async with Asking(REQUESTS, BUFFERS) as rig:
        heard = await rig.do(ASK)
        assert sent(rig.server) == CREATION
        (seen,) = heard
        assert isinstance(seen, ScaleUpSeen)
        assert (seen.uid, seen.attempt, seen.state) == ("uid-a", 1, ScaleUpState.ASKED)
        assert seen.object == f"ProvisioningRequest default/{REQUEST}"
        assert seen.until_bound

        rig.say("provisioningrequests", REQUEST, ("Accepted", "True"))
        rig.say("provisioningrequests", REQUEST, ("Accepted", "True"), ("Failed", "True"))
        heard = await rig.heard()
        states = [one.state for one in heard if isinstance(one, ScaleUpSeen)]
        assert states == [ScaleUpState.ASKED, ScaleUpState.ACCEPTED, ScaleUpState.FAILED]
        assert "Failed is True" in heard[-1].message


async def test_what_did_not_change_for_the_core_is_not_reported_again() -> None:
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK)
        rig.events.clear()
        rig.server.change("provisioningrequests", REQUEST, lambda one: one.update(status={}))
        assert not await rig.heard()


async def test_a_request_that_exists_is_not_created_again() -> None:
    """As after a crash, or an answer that was lost."""
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK)
        heard = await rig.do(ASK)
        assert not [one for one in heard if isinstance(one, ScaleUpRefused)]
        assert rig.server.names("provisioningrequests") == [REQUEST]
        assert rig.server.names("podtemplates") == [f"{NAME}-0"]


@pytest.mark.parametrize("writes", range(3))
async def test_a_crash_at_each_write_leaves_what_the_next_leader_completes(writes: int) -> None:
    server = None
    async with Asking(REQUESTS) as first:
        server = first.server
        count = 0

        async def crash(_: Request) -> Response | None:
            nonlocal count
            count += 1
            return refuse(500, "InternalError", "gone") if count > writes else None

        server.fail_always("POST", "/(podtemplates|provisioningrequests)$", crash)
        await first.do(ASK)
    server.recover()
    server.requests.clear()
    async with Asking(server=server) as second:
        heard = await second.heard()
        assert [type(one) for one in heard] == ([ScaleUpSeen] if writes == 2 else [])
        await second.do(ASK)
        assert server.names("provisioningrequests") == [REQUEST]
        assert server.names("podtemplates") == [f"{NAME}-0"]


async def test_templates_without_a_request_are_swept_by_the_next_leader() -> None:
    async with Asking(REQUESTS) as first:
        first.server.fail_always("POST", "/provisioningrequests$", refuse(500, "Internal", "x"))
        await first.do(ASK)
        assert first.server.names("podtemplates")
    first.server.recover()
    async with Asking(server=first.server) as second:
        await second.heard()
        assert not second.server.names("podtemplates")


async def test_templates_of_a_request_are_not_swept_not_even_if_requests_cannot_be_listed() -> None:
    async with Asking(REQUESTS) as first:
        await first.do(ASK)
    async with Asking(server=first.server) as second:
        await second.heard()
        assert second.server.names("podtemplates")
    first.server.fail_always("LIST", "/provisioningrequests$", refuse(403, "Forbidden", "no"))
    async with Asking(server=first.server) as third:
        await third.heard()
        assert third.server.names("podtemplates")


async def test_a_standby_holds_requests_back_until_it_leads() -> None:
    async with Asking(REQUESTS) as first:
        await first.do(ASK)
    second = Asking(server=first.server)
    standing = asyncio.ensure_future(second.controller.stand_by())
    assert not await second.heard(2)
    assert second.server.seen("WATCH", "/provisioningrequests")
    standing.cancel()
    async with second:
        (seen,) = await second.heard()
        assert isinstance(seen, ScaleUpSeen)
        assert second.server.names("podtemplates")
        assert not [
            one for one in second.events if isinstance(one, KindWatched) and one.group == GROUP
        ]


async def test_a_withdrawn_request_goes_with_its_templates() -> None:
    async with Asking(REQUESTS, BUFFERS) as rig:
        await rig.do(ASK)
        rig.server.requests.clear()
        assert await rig.do(WITHDRAW) == [ScaleUpGone("uid-a", 1)]
        assert sent(rig.server) == [
            f"DELETE provisioningrequests {REQUEST}",
            f"DELETE podtemplates {NAME}-0",
        ]
        assert all(
            content(one)["preconditions"]["uid"] for one in rig.server.seen("DELETE", "request")
        )
        rig.events.clear()
        assert not await rig.heard(5)


async def test_to_withdraw_what_does_not_exist_is_answered_as_well() -> None:
    async with Asking(REQUESTS) as rig:
        assert await rig.do(WITHDRAW) == [ScaleUpGone("uid-a", 1)]
        assert await rig.do(WithdrawScaleUp("uid-unknown", 4)) == [ScaleUpGone("uid-unknown", 4)]


async def test_a_withdrawal_is_repeated_until_nothing_is_left() -> None:
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK)
        rig.server.fail_always("DELETE", "/provisioningrequests/", refuse(500, "Internal", "x"))
        assert not await rig.do(WITHDRAW, seconds=60)
        tries = len(rig.server.seen("DELETE", "/provisioningrequests/"))
        assert 3 < tries < 60
        (refused,) = await rig.do(ASK)
        assert isinstance(refused, ScaleUpRefused)
        assert refused.answer.status == 409
        rig.server.recover()
        assert await rig.heard(40) == [refused, ScaleUpGone("uid-a", 1)]
        assert not rig.server.names("podtemplates")


async def test_other_attempts_are_left_alone() -> None:
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK, RequestScaleUp("uid-a", 2, ((0, 0, 1),)))
        await rig.do(WITHDRAW)
        assert rig.server.names("provisioningrequests") == [f"{NAME[:-1]}2-{WHERE}"]
        assert rig.server.names("podtemplates") == [f"{NAME[:-1]}2-0"]


async def test_a_request_of_an_appwrapper_that_is_gone_is_reported_and_withdrawn() -> None:
    async with Asking(REQUESTS) as first:
        await first.do(ASK)
    first.server.remove("appwrappers", "a")
    async with Asking(server=first.server) as second:
        heard = await second.heard()
        assert [(one.uid, one.attempt) for one in heard if isinstance(one, ScaleUpSeen)] == [
            ("uid-a", 1)
        ]
        await second.do(WITHDRAW)
        assert not second.server.names("provisioningrequests")


async def test_a_request_that_a_user_deletes_is_gone_with_its_templates() -> None:
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK)
        rig.events.clear()
        rig.server.remove("provisioningrequests", REQUEST)
        assert await rig.heard() == [ScaleUpGone("uid-a", 1)]
        assert not rig.server.names("podtemplates")


async def test_a_request_after_an_edit_waits_until_the_former_is_gone() -> None:
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK)
        add_appwrapper(rig.server, "a", "3")
        await rig.clock.advance(0.3)
        heard = await rig.do(ASK)
        (refused,) = [one for one in heard if isinstance(one, ScaleUpRefused)]
        assert refused.answer.status == 409
        assert "of an earlier request is being deleted" in refused.answer.message
        await rig.do(ASK)
        await rig.do(ASK)
        template = rig.server.named("podtemplates", f"{NAME}-0")["template"]
        assert template["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3"}


async def test_a_name_that_another_object_has_is_told() -> None:
    async with Asking(REQUESTS) as rig:
        rig.server.put("podtemplates", {"metadata": {"namespace": "default", "name": f"{NAME}-0"}})
        (refused,) = await rig.do(ASK)
        assert isinstance(refused, ScaleUpRefused)
        assert refused.answer.status == 422
        assert "was not made by the dispatcher; delete it" in refused.answer.message
        assert rig.server.names("podtemplates") == [f"{NAME}-0"]


async def test_a_refused_request_is_told_in_the_words_of_the_server() -> None:
    async with Asking(REQUESTS) as rig:
        rig.server.fail("POST", "/provisioningrequests$", refuse(403, "Forbidden", "no right"))
        (refused,) = await rig.do(ASK)
        assert isinstance(refused, ScaleUpRefused)
        assert (refused.answer.status, refused.uid, refused.attempt) == (403, "uid-a", 1)
        assert "no right" in refused.answer.message


async def test_a_booking_that_nears_its_end_is_told_as_expired() -> None:
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK)
        rig.say("provisioningrequests", REQUEST, ("Provisioned", "True"))
        assert (await rig.heard(1))[-1].state is ScaleUpState.PROVISIONED
        rig.events.clear()
        assert not await rig.heard(530)
        (expired,) = await rig.heard(20)
        assert expired.state is ScaleUpState.EXPIRED


async def test_buffers_are_one_request_and_pods_do_not_name_them() -> None:
    async with Asking(BUFFERS) as rig:
        (seen,) = await rig.do(ASK)
        assert sent(rig.server) == [
            f"POST podtemplates {NAME}-0",
            f"POST capacitybuffers {NAME}-0",
        ]
        assert not seen.until_bound
        rig.say("capacitybuffers", f"{NAME}-0", ("ReadyForProvisioning", "True"))
        assert (await rig.heard())[-1].state is ScaleUpState.ACCEPTED
        await rig.do(CreateItem("uid-a", 1, 0))
        (created,) = [content(one) for one in rig.server.seen("POST", "/pods$")]
        assert "annotations" not in created["metadata"]


@pytest.mark.parametrize("via", ["CapacityBuffer", "PlaceholderPods"])
async def test_that_no_nodes_are_added_is_read_from_events(via: str) -> None:
    """Neither a buffer nor a pod says so in its status."""
    async with Asking(BUFFERS, via=via) as rig:
        await rig.do(ASK)
        plural = "capacitybuffers" if via == "CapacityBuffer" else "pods"
        (name,) = rig.server.names(plural)
        words = "pod didn't trigger scale-up: 1 Insufficient cpu,1 Insufficient cpu"
        for uid in ("other", rig.server.named(plural, name)["metadata"]["uid"]):
            event = {"reason": "NotTriggerScaleUp", "message": words}
            event |= {"metadata": {"namespace": "default", "name": f"{name}.{uid}"}}
            rig.server.put("events", event | {"involvedObject": {"uid": uid}})
            rig.events.clear()
            heard = await rig.heard(11)
            assert [one.state for one in heard] == ([] if uid == "other" else [ScaleUpState.FAILED])
        assert heard[0].message == (
            "“pod didn't trigger scale-up: 1 Insufficient cpu, 1 Insufficient cpu”"
        )
        await rig.do(WITHDRAW)
        before = len(rig.server.requests)
        await rig.heard(30)
        assert not [one for one in rig.server.requests[before:] if one.path.endswith("/events")]


def failed_scheduling(name: str, uid: str, source: str) -> Json:
    """An Event as Karpenter or kube-scheduler writes it."""
    words = 'Failed to schedule pod, incompatible with nodepool "a", daemonset overhead={"cpu":"1"}'
    return {
        "metadata": {"namespace": "default", "name": f"{name}.{uid}.{source}"},
        "reason": "FailedScheduling",
        "message": words,
        "source": {"component": source},
        "involvedObject": {"kind": "Pod", "uid": uid},
    }


@pytest.mark.parametrize("via", ["CapacityBuffer", "PlaceholderPods"])
async def test_that_karpenter_adds_no_nodes_is_read_from_events_about_pods(via: str) -> None:
    """The pods of a buffer exist in Karpenter only; their uids are numbered."""
    async with Asking(BUFFERS, via=via) as rig:
        await rig.do(ASK)
        plural = "capacitybuffers" if via == "CapacityBuffer" else "pods"
        (name,) = rig.server.names(plural)
        uid = rig.server.named(plural, name)["metadata"]["uid"]
        uid += "-1" if via == "CapacityBuffer" else ""
        rig.server.put("events", failed_scheduling(name, uid, "default-scheduler"))
        rig.server.put("events", failed_scheduling(name, "other-1", "karpenter"))
        rig.events.clear()
        assert not await rig.heard(21)
        rig.server.put("events", failed_scheduling(name, uid, "karpenter"))
        rig.events.clear()
        (failed,) = await rig.heard(11)
        assert failed.state is ScaleUpState.FAILED
        assert failed.message == (
            '“Failed to schedule pod, incompatible with nodepool "a", '
            'daemonset overhead={"cpu":"1"}”'
        )


async def test_pods_name_the_request_that_was_made_for_them() -> None:
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK)
        await rig.do(CreateItem("uid-a", 1, 0), CreateItem("uid-a", 2, 0))
        bodies = [content(one)["metadata"] for one in rig.server.seen("POST", "/pods$")]
        notes = {one["labels"][labels.ATTEMPT]: one.get("annotations") for one in bodies}
        assert notes == {
            "1": {
                f"{GROUP}/consume-provisioning-request": REQUEST,
                f"{GROUP}/provisioning-class-name": (
                    "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
                ),
            },
            "2": None,
        }


def add_two_placements(server: FakeApi) -> None:
    """An AppWrapper of two pods: one of them selects nodes."""
    components = []
    for name, more in (("b-0", {}), ("b-1", {"nodeSelector": {"zone": "b"}})):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
        components.append({"template": pod | {"spec": {"containers": [container]} | more}})
    metadata = {"name": "b", "namespace": "default", "uid": "uid-b", "generation": 1}
    server.put("appwrappers", {"metadata": metadata, "spec": {"components": components}})


BOTH = RequestScaleUp("uid-b", 1, ((0, 0, 1), (1, 0, 1)))


async def test_a_gang_of_two_placements_has_two_requests_and_each_pod_names_its_own() -> None:
    async with Asking(REQUESTS) as rig:
        add_two_placements(rig.server)
        await rig.clock.advance(0.3)
        (seen,) = await rig.do(BOTH)
        names = rig.server.names("provisioningrequests")
        assert len(names) == 2
        assert seen.object.endswith(" and 1 other")
        rig.say("provisioningrequests", names[0], ("Provisioned", "True"))
        assert (await rig.heard())[-1].state is ScaleUpState.ASKED
        rig.say("provisioningrequests", names[1], ("Provisioned", "False"))
        assert (await rig.heard())[-1].state is ScaleUpState.FAILED
        await rig.do(CreateItem("uid-b", 1, 0), CreateItem("uid-b", 1, 1))
        bodies = [content(one) for one in rig.server.seen("POST", "/pods$")]
        key = f"{GROUP}/consume-provisioning-request"
        used = {one["metadata"]["name"]: one["metadata"]["annotations"][key] for one in bodies}
        assert {*used.values()} == {*names}
        sets = {
            name: rig.server.named("provisioningrequests", name)["spec"]["podSets"]
            for name in names
        }
        selected = sets[used["b-1"]][0]["podTemplateRef"]["name"]
        template = rig.server.named("podtemplates", selected)["template"]
        assert template["spec"]["nodeSelector"] == {"zone": "b"}


async def test_a_request_of_which_a_part_is_refused_says_nothing_until_the_rest_exists() -> None:
    """Else it would be withdrawn and made anew as fast as the autoscaler answers."""
    async with Asking(REQUESTS) as rig:
        add_two_placements(rig.server)
        await rig.clock.advance(0.3)
        no_more = refuse(403, "Forbidden", "exceeded quota")

        async def after_the_first(_: Request) -> Response | None:
            return no_more if rig.server.names("provisioningrequests") else None

        rig.server.fail_always("POST", "/provisioningrequests$", after_the_first)
        (refused,) = await rig.do(BOTH)
        assert isinstance(refused, ScaleUpRefused)
        (name,) = rig.server.names("provisioningrequests")
        rig.say("provisioningrequests", name, ("Accepted", "True"))
        assert await rig.heard() == [refused]
        rig.server.recover()
        (seen,) = await rig.do(BOTH)
        assert seen.state is ScaleUpState.ASKED
        await rig.do(WithdrawScaleUp("uid-b", 1))
        assert not rig.server.names("provisioningrequests")


async def test_a_request_of_which_a_former_leader_made_a_part_is_made_anew() -> None:
    async with Asking(REQUESTS) as first:
        add_two_placements(first.server)
        await first.clock.advance(0.3)
        await first.do(BOTH)
        lost = first.server.names("provisioningrequests")[1]
    first.server.remove("provisioningrequests", lost)
    async with Asking(server=first.server) as second:
        heard = await second.heard()
        assert [one.state for one in heard if isinstance(one, ScaleUpSeen)] == [
            ScaleUpState.EXPIRED
        ]
        await second.do(WithdrawScaleUp("uid-b", 1))
        (seen,) = await second.do(BOTH)
        assert seen.state is ScaleUpState.ASKED
        assert len(second.server.names("provisioningrequests")) == 2


async def test_placeholder_pods_use_no_room_and_are_followed() -> None:
    async with Asking(via="PlaceholderPods") as rig:
        (seen,) = await rig.do(ASK)
        assert sent(rig.server) == [f"POST pods {NAME}-0-0"]
        assert (seen.state, seen.object) == (ScaleUpState.ASKED, f"Pod default/{NAME}-0-0")
        assert not [one for one in rig.events if isinstance(one, PodSeen)]
        rig.server.change("pods", f"{NAME}-0-0", lambda one: one["spec"].update(nodeName="n1"))
        assert (await rig.heard())[-1].state is ScaleUpState.PROVISIONED
        assert not [one for one in rig.events if isinstance(one, PodSeen)]
        assert await rig.do(WITHDRAW) == [ScaleUpGone("uid-a", 1)]
        assert not rig.server.names("pods")


async def test_the_label_of_a_placeholder_alone_does_not_hide_a_pod() -> None:
    """Its priority has to be so low that any pod may take its place."""
    async with Asking(via="PlaceholderPods") as rig:
        await rig.do(ASK)
        pod = rig.server.named("pods", f"{NAME}-0-0")
        pod = {**pod, "metadata": {**pod["metadata"], "name": "other", "uid": "u"}}
        rig.server.put("pods", {**pod, "spec": {**pod["spec"], "priorityClassName": ""}})
        await rig.heard()
        assert [one.pod.name for one in rig.events if isinstance(one, PodSeen)] == ["other"]


async def test_a_request_in_another_namespace_says_nothing_about_an_appwrapper() -> None:
    async with Asking(REQUESTS) as rig:
        await rig.do(ASK)
        rig.events.clear()
        forged = rig.server.named("provisioningrequests", REQUEST)
        meta = {**forged["metadata"], "namespace": "elsewhere", "uid": "forged"}
        told = {"conditions": [{"type": "Failed", "status": "True"}]}
        rig.server.put("provisioningrequests", {**forged, "metadata": meta, "status": told})
        assert not await rig.heard()


async def test_a_cluster_that_serves_no_such_kind_is_asked_nothing() -> None:
    async with Asking() as rig:
        (refused,) = await rig.do(ASK)
        assert isinstance(refused, ScaleUpRefused)
        assert refused.answer.reason == "NotServed"
        assert refused.answer.message == (
            "the cluster does not serve provisioningrequests or capacitybuffers of "
            "autoscaling.x-k8s.io; install them with the autoscaler, or set scaleUp.via"
        )
        assert not sent(rig.server)


async def test_a_kind_that_is_installed_later_is_taken_up_and_one_that_goes_is_let_go() -> None:
    async with Asking() as rig:
        name = f"{REQUESTS.plural}.{GROUP}"
        rig.server.served = (*rig.server.served, REQUESTS)
        rig.server.put("customresourcedefinitions", {"metadata": {"name": name}})
        await rig.clock.advance(5)
        (seen,) = await rig.do(ASK)
        assert isinstance(seen, ScaleUpSeen)
        rig.say("provisioningrequests", REQUEST, ("Accepted", "True"))
        assert (await rig.heard())[-1].state is ScaleUpState.ACCEPTED

        rig.events.clear()
        rig.server.served = tuple(one for one in rig.server.served if one is not REQUESTS)
        rig.server.objects.pop("provisioningrequests")
        rig.server.remove("customresourcedefinitions", name)
        rig.server.send(None)
        assert await rig.heard(60) == [ScaleUpGone("uid-a", 1)]
        assert not rig.server.names("podtemplates")
        assert not [
            one for one in rig.events if isinstance(one, KindWatched) and one.group == GROUP
        ]
        (refused,) = await rig.do(ASK)
        assert isinstance(refused, ScaleUpRefused)


async def test_requests_that_cannot_be_seen_block_nothing() -> None:
    rig = Asking(REQUESTS)
    rig.server.fail_always("GET", "/provisioningrequests$", refuse(403, "Forbidden", "no"))
    add_appwrapper(rig.server, "b", "500m")
    async with rig:
        await rig.clock.advance(1)
        assert rig.status("b")["state"] == "Running"
        assert not rig.controller.watches.degraded()
        assert not [
            one for one in rig.events if isinstance(one, KindWatched) and one.group == GROUP
        ]


async def requests_of(*kinds: Resource, **settings: Any) -> list[tuple[str, str]]:
    """Method and path of all that is sent until an AppWrapper runs and one waits."""
    server = FakeApi(served=(*TABLE, *kinds))
    add_node(server, "1")
    add_appwrapper(server, "a", "2")
    async with Rig(server=server, **settings) as rig:
        add_appwrapper(server, "b", "500m")
        await rig.clock.advance(30)
        assert rig.status("b")["state"] == "Running"
        is_on = settings.get("scaleUp", {}).get("via", "off") != "off"
        assert isinstance(rig.controller.scale_ups, ScaleUps) is is_on
    return sorted((one.method, one.path) for one in server.requests)


@pytest.mark.parametrize("kinds", [(), (REQUESTS, BUFFERS)])
async def test_without_the_setting_there_is_no_further_request_or_watch(kinds: Any) -> None:
    """Counted: not one more than where the cluster serves no such kind."""
    off = await requests_of(*kinds, scaleUp={"via": "off"})
    assert off == await requests_of()
    assert not [path for _, path in off if GROUP in path or "podtemplates" in path]


async def test_without_the_kind_there_is_no_further_request_or_watch() -> None:
    assert await requests_of(scaleUp={"via": "auto"}) == await requests_of()


async def test_with_setting_and_kinds_these_are_watched_and_old_templates_looked_for() -> None:
    off, on = await requests_of(), await requests_of(REQUESTS, BUFFERS, scaleUp={"via": "auto"})
    assert {one[1].rpartition("/")[2] for one in set(on) - set(off)} >= {
        "provisioningrequests",
        "capacitybuffers",
        "podtemplates",
    }
