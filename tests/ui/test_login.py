"""A login with a token of the cluster: own rights, and nothing that another page can use."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from mcad.cli.main import main
from mcad.client.scope import Source, Target
from mcad.client.session import Environment
from mcad.kube.port import Request, Response
from mcad.ui import callers, token_access
from mcad.ui.guard import HEADERS
from mcad.ui.login import Login
from mcad.ui.pages import Pages
from mcad.ui.server import served
from mcad.ui.token_access import ApiServer
from tests.cli.cluster import crowd, kubeconfig
from tests.fakeapi import FakeApi, answer, forbidden, refuse
from tests.kube.support import FakeClock
from tests.pki import authority
from tests.serving import serve
from tests.ui.opened import PATIENCE_S, opened

ADMIN, TENANT, ROBOT = "admin-token", "tenant-token", "robot.token-x=="
USERS = {ADMIN: "ada", TENANT: "tina", ROBOT: "system:serviceaccount:team-a:robot"}
OWN = re.compile(r"/namespaces/team-a/|/leases/|/version$|/selfsubjectreviews$")
SAME = {"Sec-Fetch-Site": "same-origin"}
REFUSED = refuse(401, "Unauthorized", "Unauthorized")


@dataclass
class Cluster:
    """An API server that knows tokens: one of an administrator, and those of one namespace."""

    api: FakeApi = field(default_factory=crowd)
    users: dict[str, str] = field(default_factory=lambda: dict(USERS))
    tokens: list[str] = field(default_factory=list)  # of all requests

    def __post_init__(self) -> None:
        self.api.fail_always("*", "", self.judge)

    async def judge(self, request: Request) -> Response | None:
        headers = {key.lower(): value for key, value in request.headers.items()}
        token = headers.get("authorization", "").removeprefix("Bearer ")
        self.tokens.append(token)
        if token not in self.users:
            return REFUSED
        if request.path.endswith("/selfsubjectreviews"):
            return answer({"status": {"userInfo": {"username": self.users[token]}}}, 201)
        if token != ADMIN and not OWN.search(request.path):
            return await forbidden(request)
        return None


@dataclass
class Site:
    """The page, and a browser."""

    url: str
    gate: Login
    http: aiohttp.ClientSession

    async def get(self, path: str = "/", **headers: str) -> tuple[int, str]:
        async with self.http.get(self.url + path, headers=headers) as answered:
            assert answered.headers["Content-Security-Policy"] == POLICY
            assert answered.headers["Cache-Control"] == "no-store"
            return answered.status, await answered.text()

    async def log_in(
        self, token: str = "", headers: Mapping[str, str] = SAME, **fields: str
    ) -> tuple[int, str, str]:
        """Status, the place to go to, and the text."""
        form = {"token": token} | fields
        asking = self.http.post(
            self.url + "/login", data=form, headers=headers, allow_redirects=False
        )
        async with asking as answered:
            assert answered.headers["Content-Security-Policy"] == POLICY
            return answered.status, answered.headers.get("Location", ""), await answered.text()


POLICY = HEADERS["Content-Security-Policy"]


@asynccontextmanager
async def site(
    cluster: Cluster, tmp_path: Path, world: Environment | None = None
) -> AsyncIterator[Site]:
    async with serve(api=cluster.api) as api:
        source = Source(kubeconfig=kubeconfig(tmp_path, api.url))
        gate = Login(world or Environment(), source)
        async with gate.callers.swept(), served(gate, 0), _browser() as http:
            yield Site(gate.address.rstrip("/"), gate, http)


def _browser() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


def names(text: str) -> set[str]:
    return set(re.findall(r'<a class="row"[^>]*>([^<]+)</a>', text))


async def test_each_browser_sees_what_its_token_may_see(tmp_path: Path) -> None:
    async with site(Cluster(), tmp_path) as page, _browser() as other:
        assert (await page.log_in(ADMIN))[:2] == (303, "/")
        tenant = Site(page.url, page.gate, other)
        assert (await tenant.log_in(TENANT, namespace="team-a"))[:2] == (303, "/")
        for _ in range(2):  # what is rendered for one is not shown to another
            _, all_of_it = await page.get()
            _, own = await tenant.get()
            assert {"fits", "urgent"} < names(all_of_it)
            assert names(own) == {"urgent", "too-large"}
        assert "ada <a" in all_of_it
        assert "tina <a" in own
        assert "Namespace <b>team-a</b> only" in own
        status, text = await tenant.get("/appwrappers/default/fits")
        assert status == 404
        assert "The dispatcher does not know this AppWrapper" in text
        assert (
            "does not show namespace default"
            in (await tenant.get("/appwrappers/default/fits/yaml"))[1]
        )


async def test_a_page_of_another_login_is_sent_everything() -> None:
    """The versions of the figures of two callers may be the same."""
    async with opened(crowd()) as page:
        (seen,) = re.findall(r"seen=([0-9a-f]+-[0-9]+)", await page.get("/"))
        pages = page.guard.view.pages
        assert str(pages.version_of(seen)) == seen.partition("-")[2]
        assert [Pages().version_of(seen), pages.version_of("1"), pages.version_of("")] == [-1] * 3


async def test_a_token_shows_a_namespace_in_one_browser_and_all_in_another(tmp_path: Path) -> None:
    async with site(Cluster(), tmp_path) as page, _browser() as other:
        await page.log_in(ADMIN)
        narrow = Site(page.url, page.gate, other)
        await narrow.log_in(ADMIN, namespace="team-a")
        assert names((await narrow.get())[1]) == {"urgent", "too-large"}
        assert "fits" in names((await page.get())[1])


def test_nothing_of_the_user_of_a_kubeconfig_is_taken(tmp_path: Path) -> None:
    """Neither a token nor a certificate, which the API server would believe before a token."""
    path = Path(kubeconfig(tmp_path, "https://127.0.0.1:1", namespace="here"))
    user = "user: {token: admin-token, client-certificate: missing.crt, client-key: missing.key}"
    path.write_text(path.read_text().replace("user: {}", user))
    found = ApiServer.of(Target(str(path)))
    assert (found.plain.url, found.namespace) == ("https://127.0.0.1:1", "here")
    assert found.plain.headers == {}


def test_in_a_pod_the_server_and_its_authority_are_those_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority(tmp_path, "ca")
    monkeypatch.setattr(token_access, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    found = ApiServer.of(Target()).plain
    assert (found.url, found.headers) == ("https://[fd00::1]:6443", {})
    assert found.ssl_context is not None
    assert len(found.ssl_context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"KUBECONFIG": "none"}, "there is no kubeconfig, and this is not a pod"),
        ({"HTTPS_PROXY": "http://127.0.0.1:1"}, "--login cannot use this context"),
    ],
)
def test_a_cluster_that_a_login_cannot_reach_is_named(
    environment: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, "https://127.0.0.1:1"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(main, ["ui", "--login", "--no-browser"])
    assert done.exit_code == 1
    assert said in done.stderr


@pytest.mark.parametrize("more", [["-n", "x"], ["-A"], ["--server", "http://127.0.0.1:1"]])
def test_what_the_token_decides_is_no_option(more: list[str]) -> None:
    done = CliRunner().invoke(main, ["ui", "--login", *more])
    assert done.exit_code == 2
    assert "--login goes without --server, -n and -A" in done.stderr


async def test_a_service_account_sees_its_namespace(tmp_path: Path) -> None:
    async with site(Cluster(), tmp_path) as page:
        assert (await page.log_in(ROBOT))[0] == 303
        assert names((await page.get())[1]) == {"urgent", "too-large"}


@pytest.mark.parametrize(
    ("token", "namespace", "said"),
    [
        ("wrong", "", "does not accept your credentials"),
        ("", "", "This is not a token"),
        ("two words", "", "This is not a token"),
        ("a\r\nX-Remote-User: root", "", "This is not a token"),
        ("x" * 16_385, "", "This is not a token"),
        (ADMIN, "../x", "This is not the name of a namespace"),
        (TENANT, "", "you may not list appwrappers.workload.codeflare.dev in namespace default"),
        (TENANT, "default", "choose one of yours below"),
    ],
)
async def test_a_login_that_fails_says_why_and_keeps_nothing(
    token: str, namespace: str, said: str, tmp_path: Path
) -> None:
    async with site(Cluster(), tmp_path) as page:
        status, _, text = await page.log_in(token, namespace=namespace)
        assert status == 401
        assert said in text.replace("&#39;", "'")
        assert len(token) < 3 or token not in text
        assert not list(page.http.cookie_jar)
        assert (await page.get())[0] == 401


async def test_nothing_is_answered_without_a_login(tmp_path: Path) -> None:
    cluster = Cluster()
    async with site(cluster, tmp_path) as page:
        paths = ("/", "/events", "/appwrappers/team-a/urgent", "/appwrappers/team-a/urgent/yaml")
        for path in paths:
            status, text = await page.get(path)
            assert status == 401
            assert 'name="token"' in text
            assert "urgent" not in text.replace(f'value="{path}"', "")
        assert (await page.get("/static/ui.css"))[0] == 200
        assert (await page.get("/login"))[0] == 200
    assert cluster.tokens == []


async def test_the_own_credentials_of_the_process_are_never_used(tmp_path: Path) -> None:
    cluster = Cluster()
    async with site(cluster, tmp_path) as page:
        config = Path(kubeconfig(tmp_path, cluster.api.url))
        config.write_text(re.sub(r"user: \{\}", "user: {token: admin-token}", config.read_text()))
        await page.log_in("wrong")
        await page.log_in(TENANT, namespace="team-a")
        await page.get("/")
        await page.get("/appwrappers/team-a/urgent")
        await page.get("/appwrappers/team-a/urgent/pods")
    assert set(cluster.tokens) == {"wrong", TENANT}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://evil.example"},
        SAME | {"Host": "evil.example"},
    ],
)
async def test_another_page_cannot_log_in_or_out(headers: dict[str, str], tmp_path: Path) -> None:
    async with site(Cluster(), tmp_path) as page:
        assert (await page.log_in(ADMIN, headers))[0] == 403
        await page.log_in(ADMIN)
        async with page.http.post(page.url + "/logout", headers=headers) as answered:
            assert answered.status == 403
        assert (await page.get())[0] == 200


async def test_a_login_leads_back_to_what_was_asked_for_and_nowhere_else(tmp_path: Path) -> None:
    async with site(Cluster(), tmp_path) as page:
        _, text = await page.get("/appwrappers/team-a/urgent?sort=name")
        assert 'name="back" value="/appwrappers/team-a/urgent?sort=name"' in text
        back = "/appwrappers/team-a/urgent?sort=name"
        assert (await page.log_in(ADMIN, back=back))[1] == back
        for elsewhere in ("//evil.example", "/\\evil.example", "http://evil.example", "x", "/a\nb"):
            assert (await page.log_in(ADMIN, back=elsewhere))[1] == "/"


async def test_the_cookie_is_a_session_and_not_the_token(tmp_path: Path) -> None:
    async with site(Cluster(), tmp_path) as page:
        form = {"token": ADMIN}
        for forwarded, is_secure in ((None, False), ("https", True)):
            headers = SAME | ({"X-Forwarded-Proto": forwarded} if forwarded else {})
            asking = page.http.post(
                page.url + "/login", data=form, headers=headers, allow_redirects=False
            )
            async with asking as answered:
                cookie = answered.headers["Set-Cookie"]
            assert ADMIN not in cookie
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert ("Secure" in cookie) is is_secure


async def test_a_logout_ends_the_session_and_its_open_pages(tmp_path: Path) -> None:
    async with site(Cluster(), tmp_path) as page, _browser() as second:
        await page.log_in(ADMIN)
        other = Site(page.url, page.gate, second)
        await other.log_in(ADMIN)
        async with page.http.get(page.url + "/events") as stream:
            assert await stream.content.readany()
            async with page.http.post(page.url + "/logout", headers=SAME) as answered:
                assert answered.status == 200
                assert 'name="token"' in await answered.text()
            assert (await page.get())[0] == 401
            assert (await other.get())[0] == 200, "the same token in another browser goes on"
            async with second.post(page.url + "/logout", headers=SAME):
                pass
            async with asyncio.timeout(PATIENCE_S):
                while await stream.content.readany():
                    pass


async def test_a_token_that_is_not_accepted_any_more_ends_its_session(tmp_path: Path) -> None:
    cluster = Cluster()
    async with site(cluster, tmp_path) as page:
        await page.log_in(ADMIN)
        async with page.http.get(page.url + "/events") as stream:
            del cluster.users[ADMIN]
            async with asyncio.timeout(PATIENCE_S):
                while await stream.content.readany():
                    pass
        assert (await page.get())[0] == 401


async def test_a_proxy_logs_in_with_a_header(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.users["fresh-token"] = "tina"
    async with site(cluster, tmp_path) as page:
        admin = {"Authorization": f"Bearer {ADMIN}"}
        assert {"fits", "urgent"} < names((await page.get("/", **admin))[1])
        tenant = {"Authorization": f"Bearer {TENANT}"}
        status, text = await page.get("/", **tenant)
        assert status == 401
        assert "you may not list" in text
        assert 'name="token"' not in text, "the proxy has it"
        asked = await page.log_in(headers=SAME | tenant, namespace="team-a")
        assert asked[:2] == (303, "/")
        fresh = {"Authorization": "bearer fresh-token"}
        for headers in (tenant, fresh):  # the namespace outlasts the token
            assert names((await page.get("/", **headers))[1]) == {"urgent", "too-large"}
        assert (await page.get("/"))[0] == 401, "a namespace is no login"
        for bad in ("Basic YTpi", "Bearer", "Bearer a b", "Bearer wrong"):
            assert (await page.get("/", Authorization=bad))[0] == 401


async def test_many_requests_of_one_token_enter_once(tmp_path: Path) -> None:
    cluster = Cluster()
    async with site(cluster, tmp_path) as page:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        found = await asyncio.gather(*(page.get("/", **headers) for _ in range(5)))
    assert {status for status, _ in found} == {200}
    assert len(cluster.api.seen("POST", "/selfsubjectreviews$")) == 1


async def test_callers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "CALLERS_MAX", 1)
    async with site(Cluster(), tmp_path) as page:
        await page.log_in(ADMIN)
        status, _, text = await page.log_in(TENANT, namespace="team-a")
        assert status == 401
        assert "1 callers use this page already" in text
        monkeypatch.setattr(callers, "IDLE_S", -1.0)
        assert (await page.log_in(TENANT, namespace="team-a"))[0] == 303


class Timed(Environment):
    """Time that passes by the test."""

    def __init__(self) -> None:
        self.clock = Stepped()


class Stepped(FakeClock):
    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            await asyncio.sleep(0.01)


async def test_idle_sessions_end_and_open_pages_keep_theirs(tmp_path: Path) -> None:
    world = Timed()
    clock: Any = world.clock
    async with site(Cluster(), tmp_path, world) as page:

        async def pass_by(seconds: float) -> None:
            clock.now += seconds
            await asyncio.sleep(0.05)
            page.gate.callers.sweep()

        await page.log_in(ADMIN)
        async with page.http.get(page.url + "/events") as stream:
            await stream.content.readany()
            for _ in range(8):
                await pass_by(callers.IDLE_S / 4)
            assert (await page.get())[0] == 200
        async with asyncio.timeout(PATIENCE_S):  # until it is noticed that the page is closed
            while (await page.get())[0] == 200:
                await pass_by(callers.IDLE_S + 1.0)
        await page.log_in(ADMIN)
        await pass_by(callers.IDLE_S - 1.0)
        assert (await page.get())[0] == 200
        async with page.http.get(page.url + "/events") as stream:
            await stream.content.readany()
            await pass_by(callers.AGE_S)
            assert (await page.get())[0] == 401


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_nothing_else_can_be_changed(method: str, tmp_path: Path) -> None:
    cluster = Cluster()
    async with site(cluster, tmp_path) as page:
        await page.log_in(ADMIN)
        for path in ("/", "/appwrappers/team-a/urgent", "/login"):
            async with page.http.request(method, page.url + path, headers=SAME) as answered:
                assert answered.status == 405
        for path in ("/", "/appwrappers/team-a/urgent"):
            async with page.http.post(page.url + path, headers=SAME) as answered:
                assert answered.status == 405
    written = {one.path for one in cluster.api.requests if one.method not in ("GET", "HEAD")}
    assert written == {"/apis/authentication.k8s.io/v1/selfsubjectreviews"}


async def test_tokens_are_in_no_address_answer_or_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    async with site(Cluster(), tmp_path) as page:
        texts = [(await page.log_in(ADMIN))[2], (await page.log_in("wrong-token"))[2]]
        texts += [(await page.get(path))[1] for path in ("/", "/login", "/?token=" + ADMIN)]
        much = {"token": "x" * 50_000}
        async with page.http.post(page.url + "/login", data=much, headers=SAME) as answered:
            assert answered.status == 413
    texts += [caplog.text, *capfd.readouterr()]
    assert not [one for one in texts if "wrong-token" in one or "admin-token" in one]
