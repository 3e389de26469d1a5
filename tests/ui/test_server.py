"""The server of ``mcad ui``: which requests are answered, and what the answers contain."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from html.parser import HTMLParser
from typing import Any

import aiohttp
import pytest

from mcad.client.scope import Scope
from mcad.ui.pages import PARTS
from tests.cli.cluster import appwrapper, condition, crowd, deployment, reserved, tutorial
from tests.cli.shares import shares
from tests.fakeapi import forbidden
from tests.ui.opened import PATIENCE_S, Page, opened

FIRST, SECOND = "0001-aw-generic-deployment-1", "0002-aw-generic-deployment-2"
DRAWER = f"/appwrappers/default/{SECOND}"
OTHERS = r"^(?!.*/namespaces/default/|.*/leases|/version$|/apis?$)"  # the rest of the cluster
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


async def status(url: str, **headers: str) -> int:
    """Of a browser without a session."""
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as answer:
        assert answer.headers["Content-Security-Policy"] == POLICY
        return answer.status


# -- which requests --------------------------------------------------------------------------------


async def test_the_address_works_once_and_the_next_one_is_printed() -> None:
    async with opened(tutorial()) as page:
        (address,) = page.printed
        used = page.guard.address
        assert address == used  # that of the session of the fixture is gone
        assert await status(page.url + "/") == 403
        assert await status(page.url + "/?token=wrong") == 403
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as http:
            async with http.get(address, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, "/")
                cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            async with http.get(page.url + "/") as answer:
                assert answer.status == 200
        assert await status(address) == 403
        assert len(page.printed) == 2


@pytest.mark.parametrize("path", ["/", "/events", DRAWER, DRAWER + "/why", "/static/ui.js"])
async def test_nothing_is_served_without_a_session(path: str) -> None:
    async with opened(tutorial()) as page:
        assert await status(page.url + path) == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "[::1]:{port}", "127.0.0.1.evil:{port}"],
)
async def test_another_name_for_this_address_is_refused(host: str) -> None:
    async with opened(tutorial()) as page:
        port = page.url.rpartition(":")[2]
        assert await _with_host(page, host.format(port=port)) == 403
        assert await _with_host(page, f"localhost:{port}") == 200
        assert await _with_host(page, "localhost:9000") == 200  # kubectl port-forward 9000:8081


async def _with_host(page: Page, host: str) -> int:
    async with page.http.get(page.url + "/", headers={"Host": host}) as answer:
        return answer.status


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_changed(method: str) -> None:
    api = tutorial()
    async with opened(api) as page:
        async with page.http.request(method, page.url + DRAWER) as answer:
            assert answer.status == 405
        await page.get(DRAWER + "/why")
    assert {one.method for one in api.requests} <= {"GET", "HEAD"}


# -- what answers contain --------------------------------------------------------------------------


class Strict(HTMLParser):
    """Collects what the content security policy forbids, and what comes from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._in: str = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.faults += [f"{tag} {key}" for key in given if key == "style" or key.startswith("on")]
        self.faults += [f"{tag} {key}" for key in given if key.startswith("hx-on")]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.faults.append(tag)
        for key in ("src", "href", "action", "hx-get", "sse-connect"):
            value = given.get(key) or "/"
            if not value.startswith(("/", "#", "data:,")) or value.startswith("//"):
                self.faults.append(f"{tag} {key}={value}")


@pytest.mark.parametrize(
    "path", ["/", "/?state=waiting", DRAWER, DRAWER + "/why", "/appwrappers/x/none", "/?leaf=a/b"]
)
async def test_every_answer_has_the_policy_and_keeps_to_it(path: str) -> None:
    async with opened(tutorial()) as page, page.http.get(page.url + path) as answer:
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        strict = Strict()
        strict.feed(await answer.text())
        assert strict.faults == []


def test_the_check_finds_what_it_is_for() -> None:
    strict = Strict()
    strict.feed('<p style="x" onclick="y"><script>z</script><img src="//evil.example/">')
    assert strict.faults == ["p style", "p onclick", "script", "img src=//evil.example/"]


HOSTILE = '<img src=x onerror="alert(1)">'


async def test_names_and_reasons_are_text() -> None:
    api = tutorial()
    obj = appwrapper(
        "evil", "uid-evil", "07:59:30", deployment("d", replicas=2, cpu="9", memory="1")
    )
    obj["metadata"]["name"] = HOSTILE
    item = obj["spec"]["resources"]["GenericItems"][0]["generictemplate"]
    item["metadata"]["name"] = HOSTILE
    obj["status"]["conditions"] = [
        {"type": HOSTILE, "status": "True", "reason": HOSTILE, "message": HOSTILE}
    ]
    api.put("appwrappers", obj)
    api.change("nodes", "minikube", lambda node: node["metadata"].update(name=HOSTILE))
    async with opened(api) as page:
        text = await page.get("/")
        link = re.search(r'href="(/appwrappers/default/%3Cimg[^"]+)"', text)
        assert link is not None
        drawer = await page.get(link[1])
        asked = await page.get("/?name=" + '"><img src=x>' + "&state=<img src=x>")
        why = await page.get(link[1] + "/why")
    for one in (text, drawer, asked, why):
        assert "<img" not in one
    assert "&lt;img" in text
    assert drawer.count("&lt;img") >= 6


# -- figures ---------------------------------------------------------------------------------------


async def test_the_page_shows_capacity_nodes_and_queue() -> None:
    async with opened(tutorial()) as page:
        text = _words(await page.get("/"))
    assert "A dispatcher answers" in text
    assert "Data up to date" in text
    assert "cpu used 1950m, reserved 0, free 50m of 2" in text
    assert "minikube 98" in text
    assert (
        f"1 default {SECOND} Pending 0 2027-01-15T07:59:00.000000Z cpu=150m memory=512Mi pods=2 "
        "cpu cpu: 150m requested" in text
    )


async def test_a_cordoned_node_is_told_apart_and_lends_nothing() -> None:
    api = tutorial()
    api.change("nodes", "minikube", lambda node: node.update(spec={"unschedulable": True}))
    async with opened(api) as page:
        text = await page.get("/")
    assert "1 node is cordoned: cpu=2" in _words(text)
    assert "reserved 0, free 0 of 2" in _words(text)
    assert re.search(r'<li class="h\d apart" title="minikube: [^"]*; Cordoned">', text)


async def test_a_drawer_has_an_address_of_its_own() -> None:
    async with opened(tutorial()) as page:
        whole, part = await page.get(DRAWER), await page.get(DRAWER, **{"HX-Request": "true"})
        why = _words(await page.get(DRAWER + "/why", **{"HX-Request": "true"}))
        async with page.http.get(page.url + "/appwrappers/default/none") as answer:
            assert answer.status == 404
    assert whole.startswith("<!doctype html>")
    assert not part.startswith("<!doctype")
    for text in map(_words, (whole, part)):
        assert "Position 1 of 1, next to be dispatched once room is free" in text
        assert "FrontOfQueue." in text
        assert "cpu 150m 50m 100m" in text
    assert f"If default/{FIRST} ends." in why


async def test_who_is_ahead_and_a_reservation_in_the_way() -> None:
    async with opened(reserved()) as page:
        text = _words(await page.get("/appwrappers/default/small"))
        big = _words(await page.get("/appwrappers/default/big"))
    assert "Kept off by default/big, which has reserved 2 nodes" in text
    assert "Evicted 2 times, last for team-a/urgent (Preempting)" in text
    assert "Reservation Room: 2 nodes: node-a, node-b" in big
    assert "Reservation Given up: 2027-01-15T08:05:00.000000Z" in big


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("?namespace=team-a", {"too-large", "urgent"}),
        ("?name=fit", {"fits"}),
        ("?state=waiting&namespace=default&name=sus", {"suspended"}),
        ("?state=Running", set()),
    ],
)
async def test_rows_are_filtered_by_the_address(query: str, wanted: set[str]) -> None:
    async with opened(crowd()) as page:
        assert _names(await page.get("/" + query)) == wanted


@pytest.mark.parametrize(
    ("query", "first", "sorted_by"),
    [
        ("", "urgent", ("position", "ascending")),
        ("?sort=name", "fits", ("name", "ascending")),
        ("?sort=-name", "urgent", ("name", "descending")),
        ("?sort=namespace", "fragmented", ("namespace", "ascending")),
        ("?sort=-firstSeen&namespace=default", "guessed", ("firstSeen", "descending")),
        ("?sort=-priority", "urgent", ("priority", "descending")),
        ("?sort=demand", "urgent", ("position", "ascending")),
    ],
)
async def test_rows_are_sorted_by_the_address(
    query: str, first: str, sorted_by: tuple[str, str]
) -> None:
    async with opened(crowd()) as page:
        text = await page.get("/" + query)
    assert re.findall(r'<a class="row"[^>]*>([^<]+)</a>', text)[0] == first
    assert re.findall(r'aria-sort="(\w+)"><a id="sort-(\w+)"', text) == [sorted_by[::-1]]


async def test_an_order_stays_with_filters_pages_and_drawers() -> None:
    async with opened(crowd()) as page:
        text = await page.get("/?namespace=default&sort=name")
        other = await page.get("/appwrappers/default/fits?namespace=default&sort=-name")
    again, away = (
        "/?namespace=default&amp;sort=-name#queue-title",
        "/?namespace=default#queue-title",
    )
    assert f'id="sort-name" href="{again}"' in text, "the same header turns it round"
    assert f'id="sort-position" href="{away}"' in text
    assert '<input type="hidden" name="sort" value="name">' in text
    assert 'href="/appwrappers/default/fits?namespace=default&amp;sort=name"' in text
    assert 'sse-connect="/events?namespace=default&amp;sort=name&' in text
    assert 'class="close" href="/?namespace=default&amp;sort=-name"' in other


async def test_rows_of_a_quota_node_are_those_below_it() -> None:
    async with opened(shares()) as page:
        text = await page.get("/")
        below = _names(await page.get("/?leaf=teams/research"))
        root = _names(await page.get("/?leaf=teams/cluster"))
        assert _names(await page.get("/?leaf=teams/none")) == set()
    assert "Quota tree teams" in text
    assert 'href="/?leaf=teams%2Fresearch#queue-title"' in text, "the rows come into view"
    assert 'id="queue-title"' in text
    assert "research cpu 6 0 0 4 2 0 0" in _words(text)
    assert below == {"own", "borrower"}
    assert {"own", "borrower", "watchers", "late"} <= root


async def test_a_page_of_many_rows_has_one_hundred() -> None:
    api = tutorial()
    for number in range(130):
        spec = deployment("d", replicas=1, cpu="9", memory="1Gi")
        api.put("appwrappers", appwrapper(f"n{number:03}", f"u{number}", "07:59:30", spec))
    async with opened(api) as page:
        first, second = await page.get("/?state=waiting"), await page.get("/?state=waiting&page=2")
        assert _names(await page.get("/?state=waiting&page=9")) == _names(second)
    assert (len(_names(first)), len(_names(second))) == (100, 31)
    assert "131 of 132 AppWrappers, page 1 of 2" in first
    assert 'href="/?state=waiting&amp;page=2#queue-title"' in first


async def test_a_tenant_sees_the_own_namespace_and_is_told_so() -> None:
    api = tutorial()
    spec = deployment("secret", replicas=1, cpu="1", memory="1Gi")
    api.put("appwrappers", appwrapper("secret", "u-secret", "07:00:00", spec, namespace="team-a"))
    api.fail_always("*", OTHERS, forbidden)
    async with opened(api) as page:
        text = _words(await page.get("/"))
        why = await page.get(DRAWER + "/why")
        async with page.http.get(page.url + "/appwrappers/team-a/secret") as answer:
            assert answer.status == 404
    assert "Namespace default only" in text
    assert "Your rights do not show the capacity" in text
    assert SECOND in text
    assert "secret" not in text
    assert "instead of 75m per pod" in why


async def test_a_namespace_can_be_chosen() -> None:
    async with opened(crowd(), scope=Scope("team-a")) as page:
        assert _names(await page.get("/")) == {"too-large", "urgent"}
        async with page.http.get(page.url + "/appwrappers/default/fits") as answer:
            assert answer.status == 404


async def test_data_gets_old_when_the_api_server_is_gone_and_new_again() -> None:
    api = tutorial()
    async with opened(api) as page:
        before = page.board.latest
        assert before is not None
        api.break_down()
        text = await page.until(lambda text: "the API server cannot be reached" in text)
        assert re.search(r'Data of <time datetime="2027-01-15T08:00:00Z">', text)
        assert "Not known whether a dispatcher runs" in text
        assert SECOND in text
        api.recover()
        await page.until(lambda text: "Data up to date" in text)


async def test_a_drawer_says_what_an_autoscaler_is_asked() -> None:
    api = tutorial(led=False)
    asked = condition("ScaleUp", "07:59:30", "Accepted", "Asked for nodes for 1 pod.")
    api.change("appwrappers", SECOND, lambda obj: obj["status"]["conditions"].append(asked))
    async with opened(api) as page:
        text = _words(await page.get(DRAWER))
    assert "Scale-up Asked for nodes for 1 pod." in text


async def test_without_a_dispatcher_what_is_stored_is_shown() -> None:
    async with opened(tutorial(led=False)) as page:
        text = _words(await page.get("/"))
        why = await page.get(DRAWER + "/why")
        drawer = _words(await page.get(DRAWER))
    assert "No dispatcher answers: what is stored is shown" in text
    assert "the dispatcher does not answer at its visibility API" in text
    assert SECOND in text
    assert "the dispatcher does not answer at its visibility API" in why
    assert "Why Insufficient resources to dispatch AppWrapper." in drawer


async def test_events_of_an_appwrapper_are_shown_as_far_as_rights_go() -> None:
    api = tutorial()
    async with opened(api) as page:
        whole, part = (
            await page.get(DRAWER + "/events"),
            await page.get(DRAWER + "/events", **{"HX-Request": "true"}),
        )
        none = await page.get("/appwrappers/default/none/events")
        api.fail_always("GET", r"/events", forbidden)
        denied = await page.get(DRAWER + "/events")
    assert "Queued Insufficient resources." in _words(part)
    assert "2027-01-15T07:59:00.100000Z" in part
    assert not part.startswith("<!doctype")
    assert f"Events of default/{SECOND}" in whole
    assert "The API server keeps no Events about it" in none
    assert "You may not list events in namespace default." in denied


async def test_evictions_of_the_last_hour_are_shown() -> None:
    api = reserved()
    async with opened(api) as page:
        assert "Evicted in the last hour (1)" in await page.get("/")
        text = _words(await page.get("/"))
        hours_ago = {"at": "2027-01-15T06:59:59.000000Z"}
        api.change("appwrappers", "small", lambda obj: obj["status"]["eviction"].update(hours_ago))
        await page.until(lambda text: "Evicted in the last hour" not in text)
    assert "default/small team-a/urgent Preempting 2" in text


# -- events ----------------------------------------------------------------------------------------


async def test_an_open_page_is_sent_the_parts_that_changed() -> None:
    api = tutorial()
    async with opened(api) as page, page.events() as events:
        await asyncio.sleep(0.2)
        while not events.empty():
            assert events.get_nowait()[0] == "changed"  # nothing that the page has already
        labels = {"seen": "yes"}
        api.change("appwrappers", SECOND, lambda obj: obj["metadata"].update(labels=labels))
        assert await _until_changed(events) == set()  # no column has it
        api.remove("appwrappers", SECOND)
        while not (sent := await _until_changed(events)):
            pass
        assert sent == {"health", "queue"}


async def test_ten_open_pages_share_one_rendering() -> None:
    api = tutorial()
    async with opened(api) as page, AsyncExitStack() as stack:
        queues = [await stack.enter_async_context(page.events()) for _ in range(10)]
        await asyncio.sleep(0.2)
        before, first = page.guard.view.pages.rendered, (await page.board.after(0)).version
        api.remove("appwrappers", SECOND)
        for queue in queues:
            while "queue" not in await _until_changed(queue):
                pass
        moments = (await page.board.after(0)).version - first
        assert page.guard.view.pages.rendered - before == moments * len(PARTS)


async def _until_changed(events: asyncio.Queue[Any]) -> set[str]:
    """The names of the parts that are sent before the next ``changed``."""
    names = set()
    async with asyncio.timeout(PATIENCE_S):
        while (name := (await events.get())[0]) != "changed":
            names.add(name)
    return names


def _words(html: str) -> str:
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).replace("&#39;", "'").split())


def _names(html: str) -> set[str]:
    return set(re.findall(r'<a class="row"[^>]*>([^<]+)</a>', html))
