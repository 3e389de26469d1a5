"""The page in a real browser: every state, three widths, both schemes, keys, and axe-core.

Not part of the default suite, because Chromium is 300 MB from the distribution (a minute and more
to install): `make browser` runs it, and fails without Chromium; `make test` skips it and says so.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cluster import appwrapper, crowd, deployment, tutorial
from tests.cli.dispatcher import NOW_US
from tests.fakeapi import FakeApi
from tests.ui.opened import Page, opened
from tests.ui.states import LONG, LONG_NAME, POD, RUNNING, SECOND, STATES, logged, long
from tests.ui.test_login import TENANT, Cluster, Site, site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGS += ["--disable-background-networking", "--disable-component-update"]
WIDTHS, SCHEMES = (360, 800, 1440), ("light", "dark")
PICTURES = Path(__file__).parents[2] / "docs/pictures"
AXE = Path(__file__).parent / "vendor/axe.min.js"


@pytest.fixture(autouse=True)
def chromium() -> None:
    if not os.environ.get("MCAD_BROWSER"):
        pytest.skip("the page was NOT tried in a browser: `make browser` does that")
    if CHROMIUM is None:
        pytest.fail("no Chromium: `apt-get install chromium`", pytrace=False)


CUT_OFF = """() => Array.from(document.querySelectorAll("body *")).filter(one => {
  const box = one.getBoundingClientRect(), width = document.documentElement.clientWidth;
  if (!box.width || one.closest(".skip, .hidden, svg")) return false;
  if ((box.right > width + 1 || box.left < -1) && !one.parentElement.closest(".wide")) return true;
  if (one.matches(".wide, input, select")) return false;
  return getComputedStyle(one).overflowX !== "visible" && one.scrollWidth > one.clientWidth;
}).map(one => `${one.tagName} ${one.className || one.id}: ${one.textContent.slice(0, 60)}`)"""
"""Elements that reach beyond the screen or are cut off; wide tables scroll in their own boxes."""


class Seen:
    """A page of a browser, and what it complained about."""

    def __init__(self, tab: Any, page: Page | Site) -> None:
        self.tab = tab
        self.url = page.url
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        tab.on("console", lambda told: self.complaints.append(f"{told.type}: {told.text}"))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("request", lambda request: self.asked.add(request.url))

    async def loaded(self) -> None:
        """Wait for the answer in the drawer, if there is one."""
        await self.tab.wait_for_selector("#answer :text('Being tried')", state="detached")
        await self.tab.wait_for_selector("#events :text('Events alone')", state="detached")

    async def judge(self) -> None:
        """No violation, nothing cut off, no complaint, no request to elsewhere."""
        violations = await self.tab.evaluate(
            "async () => (await axe.run()).violations.map("
            "one => `${one.id}: ${one.nodes.map(node => node.html).join(' ')}`)"
        )
        assert violations == []
        root = "document.documentElement"
        over = await self.tab.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
        assert over <= 0
        assert await self.tab.evaluate(CUT_OFF) == []
        assert self.complaints == []
        assert [url for url in self.asked if not url.startswith((self.url, "data:"))] == []


class Browser:
    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium

    @asynccontextmanager
    async def at(self, page: Page | Site, path: str = "/", **more: Any) -> AsyncIterator[Seen]:
        """The page at an address, opened with a token as it is printed."""
        context = await self._chromium.new_context(viewport={"width": 1440, "height": 900}, **more)
        try:
            await context.add_cookies(
                [{"name": c.key, "value": c.value, "url": page.url} for c in page.http.cookie_jar]
            )
            seen = Seen(await context.new_page(), page)
            if more.get("java_script_enabled", True):
                # In a world of its own, which the policy of the page does not concern.
                await context.add_init_script(path=AXE)
            await seen.tab.clock.set_fixed_time(datetime.fromtimestamp(NOW_US / 1e6, UTC))
            await seen.tab.goto(page.url + path)
            yield seen
        finally:
            await context.close()


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        try:
            yield Browser(chromium)
        finally:
            await chromium.close()


SCREENS = {"queue": 800, "answer": 800, "events": 800, "paused": 800, "reserved": 360}
"""What docs/use/page.md shows besides the whole page, and how wide."""
STATUSES = {"unknown": "404", "not-shown": "502"}  # of the page itself
PICTURED = {("quota", 1440, scheme): f"ui-{scheme}.jpg" for scheme in SCHEMES} | {
    (name, width, scheme): f"ui-{name}-{scheme}.jpg"
    for (name, width), scheme in product(SCREENS.items(), SCHEMES)
}


async def test_every_state_at_every_width_in_both_schemes() -> None:
    async with browsing() as browser:
        for name, (made, path) in STATES.items():
            api = made()
            async with opened(api) as page:
                if name == "quota":
                    await _pass_an_hour(page, api)
                async with browser.at(page, path) as seen:
                    await _judge_everywhere(seen, name)


async def _judge_everywhere(seen: Seen, name: str) -> None:
    await seen.loaded()
    for summary in await seen.tab.locator("summary").all():
        await summary.click()
    await seen.tab.wait_for_selector("details :text('Open alone')", state="detached")
    if status := STATUSES.get(name):  # which a browser complains of
        seen.complaints = [one for one in seen.complaints if status not in one]
    for width, scheme in product(WIDTHS, SCHEMES):
        await seen.tab.set_viewport_size({"width": width, "height": 900})
        await seen.tab.emulate_media(color_scheme=scheme)
        await seen.judge()
        await _picture(seen, PICTURED.get((name, width, scheme)))


async def _pass_an_hour(page: Page, api: FakeApi) -> None:
    """As if the page had been open for an hour: it has charts."""
    page.board._history.forget()
    for minute in range(60, 0, -1):
        used = (60 - minute) // 10 + minute * 7 % 11 // 5
        whole = {"cpu": "32", "memory": "64Gi", "pods": "110"}
        books = {"cpu": str(used), "memory": f"{used}Gi", "pods": str(used)}
        total = {"allocatable": whole, "used": books, "reserved": {}, "free": {}}
        page.board._history.note(NOW_US - minute * 60_000_000, {"total": total})
    api.change("appwrappers", "late", lambda obj: obj["metadata"].update(labels={"seen": "yes"}))
    await page.until(lambda text: "Used and reserved since" in text)


async def _picture(seen: Seen, name: str | None) -> None:
    if name is not None and os.environ.get("MCAD_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        await seen.tab.screenshot(path=PICTURES / name, type="jpeg", quality=60)


async def test_keys_walk_through_the_page() -> None:
    async with browsing() as browser, opened(crowd()) as page, browser.at(page) as seen:
        await seen.loaded()
        focused = "document.activeElement.textContent"
        await seen.tab.keyboard.press("j")
        assert await seen.tab.evaluate(focused) == "urgent"
        await seen.tab.keyboard.press("ArrowDown")
        await seen.tab.keyboard.press("j")
        await seen.tab.keyboard.press("k")
        assert await seen.tab.evaluate(focused) == "fragmented"
        await seen.tab.keyboard.press("Enter")
        await seen.tab.wait_for_selector("#drawer-title:focus")
        assert await seen.tab.evaluate(focused) == "default/fragmented"
        assert seen.tab.url.endswith("/appwrappers/default/fragmented")
        await seen.tab.keyboard.press("Escape")
        assert await seen.tab.locator("#drawer .drawer").count() == 0
        assert await seen.tab.evaluate(focused) == "fragmented"
        await seen.tab.keyboard.press("/")
        await seen.tab.keyboard.type("no-mem")
        await seen.tab.keyboard.press("Enter")
        await seen.tab.wait_for_url("**/?name=no-mem#queue-title")
        assert await seen.tab.locator("a.row").all_text_contents() == ["no-memory"]
        await seen.judge()


FOCUSABLE = """() => Array.from(document.querySelectorAll(
  "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']"
)).filter(one => one.checkVisibility()).map(one => one.outerHTML.slice(0, 120))"""
FOCUS = """() => {
  const one = document.activeElement, box = one.getBoundingClientRect();
  const isShown = getComputedStyle(one).outlineStyle !== "none"
    && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return [one.outerHTML.slice(0, 120), isShown];
}"""


@pytest.mark.parametrize("width", [360, 1440])
async def test_tab_reaches_all_that_can_be_used_and_shows_where_it_is(width: int) -> None:
    path = f"/appwrappers/{LONG}/{LONG_NAME}"
    async with browsing() as browser, opened(long()) as page:
        for address in ("/", path):
            async with browser.at(page, address) as seen:
                await seen.loaded()
                await seen.tab.set_viewport_size({"width": width, "height": 640})
                wanted = await seen.tab.evaluate(FOCUSABLE)
                await seen.tab.evaluate("document.activeElement.blur()")
                reached = []
                while len(reached) < len(wanted):
                    await seen.tab.keyboard.press("Tab")
                    html, is_shown = await seen.tab.evaluate(FOCUS)
                    reached.append(html)
                    if not is_shown:
                        break
                assert reached == wanted


async def test_a_jump_within_the_page_keeps_it_and_the_way_back_renews_it() -> None:
    async with browsing() as browser, opened(crowd()) as page, browser.at(page) as seen:
        tab, path = seen.tab, "/appwrappers/team-a/urgent"
        await tab.evaluate("window.kept = true")
        await _tab_to(seen, "a.skip")
        await tab.keyboard.press("Enter")
        await tab.wait_for_timeout(500)
        assert await tab.evaluate("window.kept && document.activeElement.id") == "queue"
        await tab.keyboard.press("j")
        await tab.keyboard.press("Enter")
        await tab.wait_for_url(f"**{path}")
        await tab.wait_for_selector("#drawer-title:focus")
        assert await tab.evaluate("window.kept")
        await tab.go_back()
        await tab.wait_for_function("!window.kept && !document.querySelector('.drawer')")
        await tab.go_forward()
        await tab.wait_for_selector("#drawer-title")
        assert tab.url.endswith(path)


async def test_every_action_by_keyboard_alone() -> None:
    async with browsing() as browser, opened(logged()) as page, browser.at(page) as seen:
        press, tab = seen.tab.keyboard.press, seen.tab

        async def enter(selector: str, address: str) -> None:
            await _tab_to(seen, selector)
            await press("Enter")
            await tab.wait_for_url(f"**{address}")

        await enter("a.skip", "/#queue")
        await enter("#sort-name", "/?sort=name#queue-title")
        await enter("#sort-name", "/?sort=-name#queue-title")
        await _tab_to(seen, "select[name=state]")
        await press("R")  # Running
        await tab.wait_for_url("**/?state=Running&sort=-name#queue-title")
        await enter("#filters a", "/#queue-title")
        await enter("a.row", SECOND)
        await tab.wait_for_selector("#drawer-title:focus")
        await enter("a.close", "/")
        await press("j")
        await press("j")
        await press("Enter")
        await tab.wait_for_selector("#drawer-title:focus")
        for part in ("yaml", "pods"):
            await _tab_to(seen, f"#{part} summary")
            await press("Enter")
            await tab.wait_for_selector(f"#{part} .wide")
        await seen.judge()
        await enter(f"#pods a[href='{RUNNING}/pods/{POD}']", f"/pods/{POD}")
        assert "line 198" in await tab.locator(".end pre").inner_text()
        assert await tab.evaluate("Math.abs(document.querySelector('.end').scrollTop) < 2")
        box = await tab.locator(".end").bounding_box()
        text = await tab.locator(".end pre").bounding_box()
        assert text["y"] + text["height"] <= box["y"] + box["height"], "its last line is in view"
        await enter("a[href$='container=helper']", f"/pods/{POD}?container=helper")
        await _tab_to(seen, "p > a[href*='container=']")
        async with tab.expect_navigation():  # to the same address
            await press("Enter")
        await enter(f"a[href='{RUNNING}']", RUNNING)
        await press("Escape")
        assert await tab.locator("#drawer .drawer").count() == 0


async def test_a_login_by_keyboard_alone(tmp_path: Path) -> None:
    """A browser says that the form is of this page, and has the session afterwards."""
    here = "/appwrappers/team-a/urgent?sort=name"
    async with (
        browsing() as browser,
        site(Cluster(), tmp_path) as page,
        browser.at(page, here) as seen,
    ):
        press, tab = seen.tab.keyboard.press, seen.tab
        seen.complaints = [one for one in seen.complaints if "401" not in one]
        for width, scheme in product(WIDTHS, SCHEMES):
            await tab.set_viewport_size({"width": width, "height": 900})
            await tab.emulate_media(color_scheme=scheme)
            await seen.judge()
        await _tab_to(seen, "input[name=token]")
        await tab.keyboard.type("wrong")
        await press("Enter")
        await tab.wait_for_selector(".trouble")
        seen.complaints = [one for one in seen.complaints if "401" not in one]
        await seen.judge()
        await _tab_to(seen, "input[name=token]")
        await tab.keyboard.type(TENANT)
        await press("Tab")
        await tab.keyboard.type("team-a")
        await press("Enter")
        await tab.wait_for_url(f"**{here}")
        await tab.wait_for_selector("#drawer-title:has-text('team-a/urgent')")
        await seen.loaded()
        await seen.judge()
        await _tab_to(seen, "a[href='/login']")
        await press("Enter")
        await tab.wait_for_url("**/login")
        await seen.judge()
        await _tab_to(seen, "form[action='/logout'] button")
        await press("Enter")
        await tab.wait_for_selector("input[name=token]")
        answer = await tab.goto(page.url)
        assert answer.status == 401


async def _tab_to(seen: Seen, selector: str) -> None:
    """Press the tabulator until an element has the focus."""
    for _ in range(100):
        await seen.tab.keyboard.press("Tab")
        if await seen.tab.evaluate("name => document.activeElement.matches(name)", selector):
            return
    raise AssertionError(f"the tabulator does not reach {selector}")


IN_VIEW = """name => {
  const box = document.getElementById(name).getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight;
}"""


@pytest.mark.parametrize(("width", "height"), [(360, 640), (1440, 900)])
async def test_choosing_a_quota_leaf_brings_its_rows_into_view(width: int, height: int) -> None:
    async with browsing() as browser, opened(long()) as page, browser.at(page) as seen:
        await seen.tab.set_viewport_size({"width": width, "height": height})
        await seen.tab.focus("#quota-teams-research")
        await seen.tab.keyboard.press("Enter")
        await _shows_leaf(seen, "teams/research", ["own", "borrower"])
        await seen.tab.select_option("select[name=leaf]", "teams/ops")
        await _shows_leaf(seen, "teams/ops", ["watchers"])
        await seen.tab.click("text=Show all")
        await seen.tab.wait_for_url("**/#queue-title")
        assert await seen.tab.locator("a.row").count() == 6


async def _shows_leaf(seen: Seen, leaf: str, rows: list[str]) -> None:
    await seen.tab.wait_for_url(f"**/?leaf={leaf.replace('/', '%2F')}#queue-title")
    await seen.tab.wait_for_selector("#queue")
    assert await seen.tab.locator("a.row").all_text_contents() == rows
    assert await seen.tab.evaluate(IN_VIEW, "queue-title")
    assert await seen.tab.evaluate(
        IN_VIEW, await seen.tab.locator("a.row").first.get_attribute("id")
    )
    assert await seen.tab.locator("select[name=leaf]").input_value() == leaf


async def test_an_open_page_follows_the_cluster_and_keeps_the_focus() -> None:
    api = crowd()
    path = "/appwrappers/default/fits"
    async with browsing() as browser, opened(api) as page, browser.at(page, path) as seen:
        row = seen.tab.locator("a.row", has_text="too-large")
        await row.focus()
        api.change("appwrappers", "urgent", lambda obj: obj["spec"].update(suspend=True))
        await seen.tab.wait_for_selector("#health :text('5 on hold')")
        focused = await seen.tab.evaluate("document.activeElement.textContent")
        assert focused == "too-large"
        await seen.tab.wait_for_selector("#facts :text('3 of 4')")
        api.break_down()
        await seen.tab.wait_for_selector("#health .trouble")
        api.recover()
        await seen.tab.wait_for_selector("#health :text('Data up to date')")
        await seen.judge()


async def test_a_page_says_that_its_server_is_gone() -> None:
    async with browsing() as browser, opened(tutorial()) as page, browser.at(page) as seen:
        await asyncio.sleep(0.5)
        assert not await seen.tab.locator("#lost").is_visible()
        page.guard.end_streams()
        await seen.tab.wait_for_selector("#lost", state="visible")
        await seen.tab.wait_for_selector("#lost", state="hidden")  # it connects again


async def test_links_and_filters_need_no_script() -> None:
    plain = {"java_script_enabled": False}
    async with browsing() as browser, opened(crowd()) as page, browser.at(page, **plain) as seen:
        await seen.tab.select_option("select[name=namespace]", "team-a")
        await seen.tab.click("button[type=submit]")
        assert await seen.tab.locator("a.row").all_text_contents() == ["urgent", "too-large"]
        await seen.tab.click("a.row >> text=urgent")
        assert await seen.tab.locator("#drawer-title").text_content() == "team-a/urgent"
        await seen.tab.click("text=open alone")
        assert "would start it now" in await seen.tab.locator("main").inner_text()


async def test_what_a_hostile_name_would_run_does_not_run() -> None:
    api = tutorial()
    obj = appwrapper("x", "u-x", "07:59:30", deployment("d", replicas=1, cpu="9", memory="1"))
    obj["metadata"]["name"] = "<img src=x onerror=alert(1)>"
    api.put("appwrappers", obj)
    async with browsing() as browser, opened(api) as page, browser.at(page) as seen:
        await seen.tab.click("a.row >> text=onerror")
        await seen.tab.wait_for_selector("#drawer-title")
        assert await seen.tab.locator("#live img").count() == 0
        assert seen.complaints == []
