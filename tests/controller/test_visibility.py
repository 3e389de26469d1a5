"""The visibility API without a control plane: which requests are believed, what is asked, and that
its troubles are its own. ``tests/e2e/test_visibility.py`` has it behind a real kube-apiserver."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from mcad.api.config import Config
from mcad.api.list_page import PageFacts, PageQuery
from mcad.api.questions import Question
from mcad.controller.access import HOLDS_S, Access, Attributes, Caller, PathAttributes
from mcad.controller.answers import BadQuestionError
from mcad.controller.http_server import LOOK_S, RETRY_S, Server
from mcad.controller.leader_figures import FiguresUnavailable, LeaderFigures
from mcad.controller.replica import Replica
from mcad.controller.visibility import listener, routes
from mcad.controller.visibility.endpoint import Endpoint
from mcad.controller.visibility.front_proxy import FrontProxy, read_front_proxy
from mcad.controller.visibility.listener import Listening, Visibility
from mcad.kube.client import Client
from mcad.kube.kinds import APPWRAPPER_REPORTS
from mcad.kube.port import Request
from tests import pki
from tests.controller.test_replica import Process, Stage, play, played
from tests.fakeapi import FakeApi, answer
from tests.kube.support import FakeClock

Json = dict[str, Any]

PUBLISHED = {
    "requestheader-client-ca-file": "-----BEGIN CERTIFICATE-----",
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
CERTIFICATE = {"subject": ((("commonName", "front-proxy-client"),),)}


def published(**changes: Any) -> FrontProxy | None:
    data = {key: value for key, value in (PUBLISHED | changes).items() if value is not None}
    return read_front_proxy({"data": data})


# -- the front proxy -----------------------------------------------------------------------------


def test_the_caller_is_in_the_headers_that_are_published() -> None:
    front_proxy = published()
    assert front_proxy is not None
    headers = [
        ("X-Remote-User", "jane"),
        ("x-remote-group", "dev"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-Example.com%2Fscopes", "a"),
        ("X-Remote-Extra-example.com%2fscopes", "b"),
        ("X-Other-User", "root"),
    ]
    assert front_proxy.caller(headers) == Caller(
        "jane", ("dev", "system:authenticated"), (("example.com/scopes", ("a", "b")),)
    )
    assert front_proxy.caller(headers[1:]) is None
    assert front_proxy.caller([("X-Remote-User", "")]) is None


@pytest.mark.parametrize(
    ("certificate", "is_believed"),
    [
        (CERTIFICATE, True),
        ({"subject": ((("organizationName", "front-proxy-client"),),)}, False),
        ({"subject": ((("commonName", "system:node:a"),),)}, False),
        ({"subject": ()}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_certificate_needs_one_of_the_names(certificate: Json | None, is_believed: bool) -> None:
    front_proxy = published()
    assert front_proxy is not None
    assert front_proxy.is_shown(certificate) is is_believed


def test_without_names_every_certificate_of_the_ca_counts_and_none_does_not() -> None:
    front_proxy = published(**{"requestheader-allowed-names": "[]"})
    assert front_proxy is not None
    assert front_proxy.is_shown({"subject": ((("commonName", "any"),),)})
    assert not front_proxy.is_shown(None)


@pytest.mark.parametrize(
    "changes",
    [
        {"requestheader-client-ca-file": None},
        {"requestheader-client-ca-file": " "},
        {"requestheader-username-headers": None},
        {"requestheader-username-headers": "[]"},
        {"requestheader-username-headers": "{"},
        {"requestheader-username-headers": '"X-Remote-User"'},
    ],
    ids=str,
)
def test_without_a_front_proxy_there_is_none_to_believe(changes: Json) -> None:
    assert published(**changes) is None
    assert read_front_proxy({}) is None


# -- what a caller may see -----------------------------------------------------------------------


def reviewed(*answers: bool) -> tuple[Access, FakeApi, FakeClock]:
    api, clock = FakeApi(), FakeClock()
    for allowed in answers:
        api.fail("POST", "subjectaccessreviews", answer({"status": {"allowed": allowed}}, 201))
    return Access(Client(api, clock, Random(1))), api, clock


WHAT = Attributes("get", APPWRAPPER_REPORTS, "team-a", "job")


async def test_the_review_names_the_caller_and_the_request() -> None:
    access, api, _ = reviewed(True)
    caller = Caller("jane", ("dev",), (("scopes", ("a",)),))
    assert await access.allows(caller, WHAT)
    assert api.requests[0].body == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "jane",
            "groups": ["dev"],
            "extra": {"scopes": ["a"]},
            "resourceAttributes": {
                "group": "visibility.workload.codeflare.dev",
                "version": "v1beta1",
                "resource": "appwrapperreports",
                "subresource": "",
                "namespace": "team-a",
                "name": "job",
                "verb": "get",
            },
        },
    }


async def test_an_answer_holds_for_a_moment_and_for_this_caller_only() -> None:
    access, api, clock = reviewed(True, False, False)
    jane, joe = Caller("jane"), Caller("joe")
    assert await access.allows(jane, WHAT)
    assert await access.allows(jane, WHAT)
    assert not await access.allows(joe, WHAT)
    await clock.sleep(HOLDS_S)
    assert not await access.allows(jane, WHAT)
    assert len(api.requests) == 3


# -- requests ------------------------------------------------------------------------------------


ROW = {
    "namespace": "team-a",
    "name": "job",
    "uid": "u-job",
    "position": 3,
    "state": "Pending",
    "priority": 0,
    "waitsFor": "cpu",
    "firstSeen": "2027-01-15T08:00:00.000000Z",
    "why": "cpu: 1 requested, 0 available, 1 missing.",
}
AHEAD = [{"namespace": "team-a", "name": "first"}, {"namespace": "team-b", "name": "secret"}]


WHY = {
    "mayEvict": ["team-a/first", "team-b/secret"],
    "wouldStart": [
        {"text": "If team-b/secret, team-a/first end.", "appwrappers": ["team-b/secret"]}
    ],
    "heldBy": {"appwrappers": [{"appwrapper": "team-b/secret", "amount": "1"}]},
    "certificate": {"tree": "teams", "node": "team-b", "nodes": [{"name": "node-1"}]},
}


class Told:
    """Figures that are the same for ever; ``wishes`` are those of the latest list."""

    def __init__(self) -> None:
        self.wishes: Json = {}
        self.trouble = ""

    async def rows(self, render: Callable[[Json], bytes], **wishes: Any) -> list[bytes]:
        if self.trouble:
            raise FiguresUnavailable(self.trouble)
        self.wishes = wishes
        return [render(ROW)]

    async def page(
        self, render: Callable[[Json], bytes], query: PageQuery, **wishes: Any
    ) -> tuple[list[bytes], PageFacts]:
        self.wishes = wishes | {"query": query}
        return [render(ROW)], PageFacts(
            number=1,
            pages=2,
            matching=201,
            total=300,
            in_line=1,
            on_hold=0,
            others={},
            states=["Pending"],
            namespaces=["team-a"],
        )

    async def detail(self, namespace: str, name: str) -> Json | None:
        return (
            ROW | {"ahead": AHEAD, "keptOffBy": AHEAD}
            if (namespace, name) == ("team-a", "job")
            else None
        )

    async def why(self, namespace: str, name: str) -> Json | None:
        view = await self.detail(namespace, name)
        return view and view | WHY

    async def what_if(self, question: Question, own: str) -> Json:
        if question.manifests and question.manifests[0].get("spec") == "bad":
            raise BadQuestionError("nothing was tried", [(0, "spec: must be an object")])
        self.wishes = {"question": question, "own": own}
        return {"changes": [{"appwrapper": f"{one['namespace']}/{one['name']}"} for one in AHEAD]}

    def titles(self) -> frozenset[str]:
        return frozenset(f"{one['namespace']}/{one['name']}" for one in AHEAD)

    async def capacity(self) -> bytes:
        return b'{"nodes":[]}'

    async def quota(self) -> bytes:
        return b'{"trees":[]}'

    async def quota_node(self, tree: str, node: str) -> Json | None:
        return {"tree": tree, "node": node} if node == "a" else None


class Allowed(Access):
    """Lets callers do what the test says, and remembers what was asked."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.asked: list[Attributes] = []

    async def allows(self, caller: Caller, what: Attributes | PathAttributes) -> bool:
        assert isinstance(what, Attributes)
        self.asked.append(what)
        where = what.namespace or "*"
        return not self.refused & {where, what.resource.plural}


Ask = Callable[..., Awaitable[tuple[int, Json]]]


@pytest.fixture(scope="module")
def front_proxy_pki(certificates: Path) -> Path:
    pki.issue(certificates, "ca", "front-proxy-client")
    pki.issue(certificates, "ca", "impostor")
    return certificates


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def allowed() -> Allowed:
    return Allowed()


@pytest.fixture
async def ask(told: Told, allowed: Allowed, front_proxy_pki: Path) -> AsyncIterator[Ask]:
    """Ask as a client with a certificate, in the name of a user; over TLS."""
    folder = front_proxy_pki
    believed = published(**{"requestheader-client-ca-file": (folder / "ca.crt").read_text()})
    assert believed is not None
    app = routes.application(told, allowed, believed)  # type: ignore[arg-type]
    server = Server(app)
    context = listener.context_of(believed, folder)
    port = await server.start("127.0.0.1", 0, context)

    async def ask(
        path: str = "", *, by: str = "front-proxy-client", user: str = "jane", **more: Any
    ) -> tuple[int, Json]:
        trusting = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        if by:
            trusting.load_cert_chain(folder / f"{by}.crt", folder / f"{by}.key")
        headers = {"X-Remote-User": user, **more.pop("headers", {})} if user else {}
        url = f"https://localhost:{port}{routes.ROOT}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                more.pop("method", "GET"), url, ssl=trusting, headers=headers, **more
            ) as answer,
        ):
            return answer.status, await answer.json() if answer.method != "HEAD" else {}

    yield ask
    await server.close()


REPORTS = "/namespaces/team-a/appwrapperreports"


async def test_a_list_is_of_the_namespace_and_of_what_is_wished(ask: Ask, told: Told) -> None:
    status, answer = await ask(f"{REPORTS}?waiting=true&starts=true")
    assert status == 200
    assert (answer["kind"], answer["apiVersion"]) == (
        "AppWrapperReportList",
        "visibility.workload.codeflare.dev/v1beta1",
    )
    (item,) = answer["items"]
    assert item["metadata"]["name"] == "job"
    assert item["status"] == ROW
    assert told.wishes == {"namespace": "team-a", "waiting_only": True, "with_starts": True}
    await ask("/appwrapperreports")
    assert told.wishes == {"namespace": None, "waiting_only": False, "with_starts": False}


async def test_a_page_of_a_namespace_counts_no_other(ask: Ask, told: Told) -> None:
    status, answer = await ask(f"{REPORTS}?pageSize=200&only=team-b&name=j&maxAge=30&starts=true")
    assert status == 200
    (item,) = answer["items"]
    assert (item["metadata"]["name"], item["status"]) == ("job", ROW)
    assert (answer["page"]["matching"], answer["page"]["inLine"]) == (201, 1)
    asked = PageQuery(only="team-a", name="j", size=200)
    assert told.wishes == {"query": asked, "with_starts": True, "max_age_s": 30}
    await ask("/appwrapperreports?pageSize=7&page=2")
    assert told.wishes["query"] == PageQuery(page=2, size=7)
    status, answer = await ask(f"{REPORTS}?pageSize=many")
    assert (status, answer["reason"]) == (400, "BadRequest")
    assert answer["message"].startswith("pageSize must be a number from 1 to 1000: ")


async def test_a_page_filtered_by_quota_needs_the_right_to_the_node(
    ask: Ask, told: Told, allowed: Allowed
) -> None:
    assert (await ask(f"{REPORTS}?pageSize=200&leaf=t/a"))[0] == 200
    assert allowed.asked[-1] == routes.QUOTA_NODE
    told.wishes = {}
    allowed.refused = {"quotareports"}
    assert (await ask(f"{REPORTS}?pageSize=200&leaf=t/a"))[0] == 403
    assert (await ask("/appwrapperreports?pageSize=200&leaf=t/a"))[0] == 403
    assert not told.wishes
    assert (await ask(f"{REPORTS}?pageSize=200"))[0] == 200


async def test_the_caller_is_reviewed_for_what_the_path_means(ask: Ask, allowed: Allowed) -> None:
    for path in (REPORTS, f"{REPORTS}/job", "/capacityreports/cluster", "/quotareports"):
        await ask(path)
    await ask("/quotareports/cluster/node?tree=t&node=a")
    told = [
        (one.verb, one.resource.plural, one.subresource, one.namespace, one.name)
        for one in allowed.asked
        if one is not routes.EVERYWHERE
    ]
    assert told == [
        ("list", "appwrapperreports", "", "team-a", ""),
        ("get", "appwrapperreports", "", "team-a", "job"),
        ("get", "capacityreports", "", None, "cluster"),
        ("list", "quotareports", "", None, ""),
        ("get", "quotareports", "node", None, "cluster"),
    ]


async def test_a_caller_without_the_right_is_told_so(ask: Ask, allowed: Allowed) -> None:
    allowed.refused = {"team-a"}
    for method in ("GET", "HEAD"):
        status, answer = await ask(REPORTS, method=method)
        assert status == 403
    status, answer = await ask(REPORTS)
    assert answer["reason"] == "Forbidden"
    assert answer["message"] == (
        'User "jane" cannot list resource "appwrapperreports" in the namespace "team-a"'
    )


async def test_names_of_other_namespaces_need_the_right_to_list_them(
    ask: Ask, allowed: Allowed
) -> None:
    for refused, told in ((set(), AHEAD), ({"*"}, AHEAD[:1])):
        allowed.refused = refused
        view = (await ask(f"{REPORTS}/job"))[1]["status"]
        assert (view["ahead"], view["keptOffBy"]) == (told, told)


async def test_why_names_appwrappers_of_others_only_with_that_right(
    ask: Ask, allowed: Allowed
) -> None:
    status, answer = await ask(f"{REPORTS}/job/why")
    assert (status, answer["kind"]) == (200, "AppWrapperReport")
    assert answer["status"]["mayEvict"] == WHY["mayEvict"]
    allowed.refused = {"*"}
    text = json.dumps((await ask(f"{REPORTS}/job/why"))[1])
    assert "secret" not in text
    assert "If an AppWrapper of another namespace, team-a/first end." in text
    assert '"team-b"' in text, "a node of a quota tree is no AppWrapper"
    allowed.refused = {"team-a"}
    status, answer = await ask(f"{REPORTS}/job/why")
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert (await ask("/namespaces/team-b/appwrapperreports/none/why"))[0] == 404


IS_JSON = {"Content-Type": "application/json"}
WHAT_IFS = "/namespaces/team-a/whatifs"


def wrapper(namespace: str, **more: Any) -> Json:
    return {"kind": "AppWrapper", "metadata": {"name": "new", "namespace": namespace}} | more


async def test_manifests_are_tried_where_the_caller_may_create_them(
    ask: Ask, told: Told, allowed: Allowed
) -> None:
    allowed.refused = {"*", "team-b"}
    body = {"spec": {"manifests": [wrapper("team-a")]}}
    status, answer = await ask(WHAT_IFS, method="POST", json=body)
    assert (status, answer["kind"]) == (200, "WhatIf")
    assert answer["status"]["changes"] == [{"appwrapper": "team-a/first"}]
    assert told.wishes == {"question": Question(manifests=(wrapper("team-a"),)), "own": "team-a"}
    asked = [(one.verb, one.resource.plural, one.namespace) for one in allowed.asked]
    assert asked[:2] == [("create", "whatifs", "team-a"), ("create", "appwrappers", "team-a")]
    body = {"spec": {"manifests": [wrapper("team-a"), wrapper("team-b")]}}
    status, answer = await ask(WHAT_IFS, method="POST", json=body)
    assert status == 403
    assert 'cannot create resource "appwrappers" in the namespace "team-b"' in answer["message"]
    status, _ = await ask("/namespaces/team-b/whatifs", method="POST", json={"spec": {}})
    assert status == 403


@pytest.mark.parametrize(
    "spec",
    [
        {"changes": {"nodes": 1, "like": "n"}},
        {"changes": {"leftOut": ["team-a/first"]}},
        {"changes": {"quota": [["t/a", "cpu=1"]]}},
        {"changes": {"assignments": ["policy=Backfill"]}},
        {"drain": ["n"]},
        {"subtrees": [{}]},
    ],
    ids=str,
)
async def test_other_changes_need_the_right_to_list_all_reports(
    spec: Json, ask: Ask, told: Told, allowed: Allowed
) -> None:
    assert (await ask(WHAT_IFS, method="POST", json={"spec": spec}))[0] == 200
    told.wishes = {}
    allowed.refused = {"*"}
    status, answer = await ask(WHAT_IFS, method="POST", json={"spec": spec})
    assert (status, told.wishes) == (403, {})
    assert 'cannot list resource "appwrapperreports"' in answer["message"]


async def test_faults_of_manifests_are_told_by_number(ask: Ask) -> None:
    body = {"spec": {"manifests": [wrapper("team-a", spec="bad")]}}
    status, answer = await ask(WHAT_IFS, method="POST", json=body)
    assert (status, answer["reason"]) == (422, "Invalid")
    fault = {"field": "spec.manifests[0]", "message": "spec: must be an object"}
    assert answer["details"]["causes"] == [fault]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"data": b"{"}, 415),
        ({"json": {}}, 422),
        ({"json": {"spec": {"drian": ["n"]}}}, 422),
        ({"json": {"spec": {"drain": "n"}}}, 422),
        ({"data": BytesIO(b"n" * (2**20 + 1)), "headers": IS_JSON}, 413),
    ],
    ids=["not JSON", "nothing", "misspelt", "another type", "too large"],
)
async def test_a_body_that_is_no_question(body: Json, status: int, ask: Ask, told: Told) -> None:
    assert (await ask(WHAT_IFS, method="POST", **body))[0] == status
    assert not told.wishes


async def test_only_the_front_proxy_with_a_user_is_answered(ask: Ask) -> None:
    for wrong in ({"by": "impostor"}, {"user": ""}):
        for path in ("", REPORTS):
            status, answer = await ask(path, **wrong)
            assert (status, answer["reason"]) == (401, "Unauthorized")


async def test_without_a_certificate_there_is_no_answer(ask: Ask) -> None:
    with pytest.raises(aiohttp.ClientError):
        await ask(by="")


async def test_an_unknown_name_is_told_from_an_unknown_path(ask: Ask) -> None:
    status, answer = await ask(f"{REPORTS}/other")
    assert (status, answer["details"]["name"]) == (404, "other")
    status, answer = await ask("/quotareports/cluster/node?tree=t&node=b")
    assert (status, answer["details"]["name"]) == (404, "t/b")
    status, answer = await ask("/capacityreports/other")
    assert (status, answer["details"]["name"]) == (404, "other")
    status, answer = await ask("/jobs")
    assert (status, answer["kind"], answer["details"]) == (404, "Status", {})


@pytest.mark.parametrize(
    ("path", "method"), [(REPORTS, "POST"), (f"{REPORTS}?watch=true", "GET"), (REPORTS, "DELETE")]
)
async def test_reports_are_read_and_not_watched(path: str, method: str, ask: Ask) -> None:
    status, answer = await ask(path, method=method)
    assert (status, answer["reason"]) == (405, "MethodNotAllowed")


async def test_why_there_are_no_figures_is_told(ask: Ask, told: Told) -> None:
    told.trouble = "not synced yet; see /readyz"
    status, answer = await ask(REPORTS)
    assert (status, answer["message"]) == (503, "not synced yet; see /readyz")
    assert (await ask(REPORTS, method="HEAD"))[0] == 200, "a probe costs nothing"


async def test_reports_about_the_cluster(ask: Ask) -> None:
    assert (await ask("/capacityreports/cluster"))[1]["status"] == {"nodes": []}
    assert (await ask("/capacityreports"))[1]["items"][0]["status"] == {"nodes": []}
    assert (await ask("/quotareports/cluster"))[1]["status"] == {"trees": []}
    node = await ask("/quotareports/cluster/node?tree=t&node=a")
    assert node[1]["status"] == {"tree": "t", "node": "a"}


async def test_a_table_has_a_row_for_each(ask: Ask) -> None:
    accepts = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    for path in (REPORTS, f"{REPORTS}/job"):
        answer = (await ask(path, headers=accepts))[1]
        assert (answer["kind"], len(answer["rows"])) == ("Table", 1)
        cells = dict(
            zip(
                [one["name"] for one in answer["columnDefinitions"]],
                answer["rows"][0]["cells"],
                strict=True,
            )
        )
        assert (cells["Name"], cells["Position"], cells["Waits-For"]) == ("job", 3, "cpu")
        assert answer["rows"][0]["object"]["metadata"]["namespace"] == "team-a"


# -- its troubles --------------------------------------------------------------------------------


CONFIG_MAP = "configmaps/extension-apiserver-authentication"


def config_map(data: Json = PUBLISHED) -> Json:
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    return {"metadata": metadata, "data": data}


class Trial:
    """A port whose API server, folder and time the test has in hand."""

    def __init__(self, folder: Path) -> None:
        self.api, self.clock = FakeApi(), FakeClock(horizon=0)
        self.client = Client(self.api, self.clock, Random(1))
        self.endpoint = Endpoint("mcad-system", "mcad-visibility", "10.1.2.3")
        replica = Replica(self.client, Config(), identity="a")
        where = Listening("127.0.0.1", 0, folder, self.endpoint)
        self.visibility = Visibility(LeaderFigures(replica), where)

    async def run(self, until_s: float) -> None:
        self.clock.horizon = self.clock.now + until_s
        task = asyncio.ensure_future(self.visibility.run(self.client))
        await asyncio.wait_for(self.clock.parked.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def asked(self, path: str) -> int:
        return sum(path in one.path for one in self.api.requests)


async def test_without_a_front_proxy_it_is_told_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial = Trial(tmp_path)
    trial.api.fail_always("GET", CONFIG_MAP, answer(config_map({})))
    await trial.run(3 * RETRY_S)
    (told,) = [one.message for one in caplog.records]
    assert "has no front proxy (--requestheader-client-ca-file)" in told
    assert trial.asked("configmaps") == 4


async def test_without_a_certificate_it_is_told_which_file_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial = Trial(tmp_path)
    trial.api.fail_always("GET", CONFIG_MAP, answer(config_map()))
    await trial.run(RETRY_S)
    (told,) = [one.message for one in caplog.records]
    assert str(tmp_path / "tls.crt") in told


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("visibility")
    pki.authority(folder, "ca")
    pki.issue(folder, "ca", "tls", "subjectAltName=DNS:localhost")
    return folder


def served(folder: Path) -> Trial:
    trial = Trial(folder)
    ca = {"requestheader-client-ca-file": (folder / "ca.crt").read_text()}
    trial.api.fail_always("GET", CONFIG_MAP, answer(config_map(PUBLISHED | ca)))
    trial.api.fail_always("GET", "services/", answer({"metadata": {"uid": "u-service"}}))
    trial.api.fail_always("PATCH", "endpointslices/", answer({}))
    return trial


async def test_the_address_is_announced_once(
    certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial = served(certificates)
    await trial.run(3 * LOOK_S)
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == []
    (patch,) = [one for one in trial.api.requests if one.method == "PATCH"]
    assert patch.path.endswith("/namespaces/mcad-system/endpointslices/mcad-visibility-ipv4")
    assert patch.content_type == "application/apply-patch+yaml"
    assert patch.params == {"fieldManager": "mcad-dispatcher", "force": "true"}
    assert isinstance(patch.body, dict)
    assert patch.body["endpoints"] == [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}]
    marks = patch.body["metadata"]["labels"]
    assert marks["kubernetes.io/service-name"] == "mcad-visibility"
    assert patch.body["metadata"]["ownerReferences"][0]["uid"] == "u-service"


async def test_other_certificates_open_the_same_port_anew(
    tmp_path: Path, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("ca.crt", "ca.key", "tls.crt", "tls.key"):
        (tmp_path / name).write_bytes((certificates / name).read_bytes())
    caplog.set_level("INFO")
    trial = served(tmp_path)
    looks = 0

    async def replaced(_: Request) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            pki.issue(tmp_path, "ca", "tls", "subjectAltName=DNS:localhost")

    trial.api.always.insert(0, ("GET", CONFIG_MAP, replaced))
    await trial.run(4 * LOOK_S)
    opened = [one.message for one in caplog.records if "listening" in one.message]
    assert len(opened) == 2
    assert opened[0] == opened[1], "the address that was announced"


# -- beside the dispatcher -----------------------------------------------------------------------


def test_a_companion_that_breaks_leaves_the_leader_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_: Client) -> None:
        raise RuntimeError("broken")

    async def story(stage: Stage) -> None:
        a = Process(stage.cluster, "a")
        a.replica.companion = broken
        await stage.clock.sleep(1)
        await stage.submit("first")
        await stage.clock.sleep(30)
        assert (await stage.status("first"))["state"] == "Running"
        assert a.leads
        a.stop.set()
        await asyncio.wait_for(a.life, 5)

    play(story)
    assert [one.message for one in caplog.records if "companion" in one.message] == [
        "broken companion error=broken"
    ]


@played
async def test_a_companion_works_while_its_process_leads_and_not_longer(stage: Stage) -> None:
    told: list[str] = []

    async def companion(_: Client) -> None:
        told.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            told.append("ended")

    a = Process(stage.cluster, "a")
    await stage.clock.sleep(1)
    b = Process(stage.cluster, "b")
    b.replica.companion = companion
    await stage.clock.sleep(30)
    assert told == []
    a.stop.set()
    await asyncio.wait_for(a.life, 5)
    await stage.clock.sleep(5)
    assert told == ["begun"]
    b.stop.set()
    await asyncio.wait_for(b.life, 5)
    assert told == ["begun", "ended"]
