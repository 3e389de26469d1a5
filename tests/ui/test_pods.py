"""Pods, logs and YAML of an AppWrapper: with the caller's rights, bounded, and as text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mcad.client.scope import Scope
from mcad.kube.port import Request, Response
from mcad.ui import manifest, pods
from mcad.ui.manifest import to_yaml
from tests.cli.cluster import RUNNING_UID, crowd, event, tutorial
from tests.fakeapi import FakeApi, forbidden, refuse
from tests.ui.opened import opened
from tests.ui.test_server import FIRST, SECOND

ABOUT = f"/appwrappers/default/{FIRST}"
POD = f"{FIRST}-7-x"
LOG = rf"/pods/{POD}/log$"
PART = {"HX-Request": "true"}


def started(*names: str) -> FakeApi:
    """The tutorial's cluster, whose first pod has these containers, and has begun them."""
    api = tutorial()
    statuses = [
        {"name": name, "ready": True, "restartCount": 2, "state": {"running": {}}} for name in names
    ]

    def begin(pod: dict[str, Any]) -> None:
        pod["spec"]["containers"] = [{"name": name} for name in names]
        pod["status"]["containerStatuses"] = statuses

    api.change("pods", POD, begin)
    return api


def log(api: FakeApi, body: bytes) -> None:
    """What every log says."""
    api.fail_always("GET", LOG, Response(200, body))


async def test_pods_are_shown_with_links_to_their_logs() -> None:
    async with opened(started("main", "helper")) as page:
        part = await page.get(ABOUT + "/pods", **PART)
        whole = await page.get(ABOUT + "/pods")
        none = await page.get(f"/appwrappers/default/{SECOND}/pods", **PART)
        gone = await page.get("/appwrappers/default/gone/pods", **PART)
        drawer = await page.get(ABOUT)
    row = r'<a href="([^"]+)">([^<]+)</a></th><td>Running</td><td class="n">2/2</td><td class="n">4'
    assert re.findall(row, part) == [(f"{ABOUT}/pods/{POD}", POD)]
    assert f"{FIRST}-7-y" in part
    assert not part.startswith("<!doctype")
    assert f"Pods of default/{FIRST}" in whole
    assert "It has no pods." in none
    assert "There is no AppWrapper default/gone." in gone
    assert f'hx-get="{ABOUT}/pods"' in drawer, "which asks for them once it is opened"


async def test_the_end_of_a_log_is_shown_and_no_more_is_asked_for() -> None:
    api = started("main", "helper")
    log(api, b"".join(b"line %d\n" % number for number in range(pods.LINES)))
    async with opened(api) as page:
        text = await page.get(f"{ABOUT}/pods/{POD}")
        await page.get(f"{ABOUT}/pods/{POD}?container=helper")
        await page.get(f"{ABOUT}/pods/{POD}?container=none")
    first, second, third = (one.params for one in api.seen("GET", LOG))
    assert first == {"container": "main", "tailLines": "200", "limitBytes": str(1024 * 1024)}
    assert (second["container"], third["container"]) == ("helper", "main")
    assert "line 0\n" in text
    assert "line 199\n" in text
    assert "Its end; <code>mcad logs</code> shows all." in text


@pytest.mark.parametrize(
    ("body", "is_cut"), [(b"one\n", False), (b"x" * (pods.SHOWN_MAX + 10) + b"last\n", True)]
)
async def test_a_log_that_is_shown_whole_is_not_called_its_end(body: bytes, is_cut: bool) -> None:
    api = started("main")
    log(api, body)
    async with opened(api) as page:
        text = await page.get(f"{ABOUT}/pods/{POD}")
    assert ("Its end" in text) is is_cut
    assert len(text) < pods.SHOWN_MAX + 10_000
    assert text.count("last\n") == is_cut


async def test_a_log_of_very_long_lines_is_read_from_nearer_to_its_end() -> None:
    """``limitBytes`` counts from the first of the lines, so the newest would be missing."""
    api = started("main")

    async def lines(request: Request) -> Response:
        many = request.params["tailLines"] == str(pods.LINES)
        return Response(200, b"y" * pods.READ_MAX if many else b"newest\n")

    api.fail_always("GET", LOG, lines)
    async with opened(api) as page:
        text = await page.get(f"{ABOUT}/pods/{POD}")
    assert "newest\n" in text
    assert "Its end" in text


async def test_a_log_is_text() -> None:
    api = started("main")
    log(api, b"<script>alert(1)</script>\x1b[31mred\x00\tx\xff\n")
    async with opened(api) as page:
        text = await page.get(f"{ABOUT}/pods/{POD}")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script>alert" not in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (forbidden, "You may not read logs of pods in namespace default."),
        (refuse(400, "BadRequest", "container main is gone"), "container main is gone"),
        (Response(204, b""), "It has written nothing."),
    ],
)
async def test_why_there_is_no_log_is_said(fault: Any, said: str) -> None:
    api = started("main")
    api.fail_always("GET", LOG, fault)
    async with opened(api) as page:
        assert said in await page.get(f"{ABOUT}/pods/{POD}")


async def test_a_container_that_has_not_started_is_not_asked_for() -> None:
    api = tutorial()
    waits = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}

    def wait(pod: dict[str, Any]) -> None:
        pod["spec"]["containers"] = [{"name": "main"}]
        pod["status"] = {"phase": "Pending", "containerStatuses": [waits]}

    api.change("pods", POD, wait)
    async with opened(api) as page:
        assert "It has not started (ImagePullBackOff)." in await page.get(f"{ABOUT}/pods/{POD}")
    assert not api.seen("GET", "/log")


async def test_events_of_a_pod_are_beside_its_log_as_far_as_rights_go() -> None:
    api = started("main")
    uid = api.named("pods", POD)["metadata"]["uid"]
    api.put("events", event(uid, "Pulled", "The image is there."))
    async with opened(api) as page:
        assert "The image is there." in await page.get(f"{ABOUT}/pods/{POD}")
        api.fail_always("GET", r"/events", forbidden)
        denied = await page.get(f"{ABOUT}/pods/{POD}")
    assert "You may not list events in namespace default." in denied


async def test_pods_of_others_are_not_shown_by_this_way() -> None:
    api = started("main")
    api.change("pods", "others", lambda pod: pod["metadata"].update(namespace="default"))
    async with opened(api) as page:
        text = await page.get(f"{ABOUT}/pods/others")
        forged = await page.get(f"{ABOUT}/pods/..%2F..%2Fsecrets")
    assert "has no pod others any more" in text
    assert "has no pod ../../secrets any more" in forged
    assert not api.seen("GET", "/log")


@pytest.mark.parametrize("part", ["pods", f"pods/{POD}", "yaml"])
async def test_rights_are_those_of_the_caller(part: str) -> None:
    api = started("main")
    api.deny("pods" if "pods" in part else "appwrappers", method="GET")
    async with opened(api, scope=Scope(all_namespaces=True)) as page:
        text = await page.get(f"{ABOUT}/{part}", **PART)
    assert "You may not list pods in namespace default." in text or (
        part == "yaml" and "ask an administrator for this right" in text
    )


async def test_a_page_of_one_namespace_reads_nothing_of_others() -> None:
    api = crowd()
    async with opened(api, scope=Scope("team-a")) as page:
        before = len(api.requests)
        for part in ("yaml", "pods", "pods/x"):
            text = await page.get(f"/appwrappers/default/fits/{part}", **PART)
            assert "This page does not show namespace default." in text
    assert not [one for one in api.requests[before:] if "/namespaces/default/" in one.path]


async def test_yaml_is_shown_without_bookkeeping_and_secrets() -> None:
    api = tutorial()
    secret = {"kind": "Secret", "data": {"password": "cGFzcw=="}, "stringData": {"key": "hush"}}
    last = {manifest.LAST_APPLIED: json.dumps(secret), "mine": "<b>kept</b>"}

    def wrap(obj: dict[str, Any]) -> None:
        obj["metadata"] |= {"managedFields": [{"manager": "kubectl"}], "annotations": last}
        obj["spec"]["resources"]["GenericItems"].append({"generictemplate": secret})

    api.change("appwrappers", FIRST, wrap)
    async with opened(api) as page:
        whole, part = await page.get(ABOUT + "/yaml"), await page.get(ABOUT + "/yaml", **PART)
    assert f"name: {FIRST}\n" in part
    assert f"uid: {RUNNING_UID}\n" in part
    assert "password: (hidden)\n" in part
    assert "mine: &lt;b&gt;kept&lt;/b&gt;" in part
    assert not [one for one in ("cGFzcw", "hush", "managedFields", "last-applied") if one in part]
    assert "YAML of default/" in whole
    assert "the end is left out" not in whole


async def test_yaml_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "SHOWN_MAX", 100)
    async with opened(tutorial()) as page:
        part = await page.get(ABOUT + "/yaml", **PART)
    assert len(part) < 500
    assert "the end is left out" in part


def test_values_of_secrets_that_are_no_map_are_hidden_as_well() -> None:
    shown = to_yaml({"metadata": {}, "items": [{"kind": "Secret", "data": "hush"}]})
    assert "hush" not in shown
