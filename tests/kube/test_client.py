"""Verbs: what they send, what they return, and when they try again."""

import asyncio
import json

import pytest

from mcad.kube import client as client_module
from mcad.kube.client import EVERYTHING, Client, CreateOptions, DeleteOptions, Selection
from mcad.kube.errors import ApiError, BadAnswer, ConnectionLost, OutcomeUnknown, RequestTimeout
from mcad.kube.port import Request
from tests.fakeapi import answer, content, hang, refuse, reset
from tests.kube.support import NODES, PODS, WRAPPERS, client_of, pod

IN_DEFAULT = PODS.path("default")
REVIEWS = "/selfsubjectaccessreviews"


class TestVerbs:
    async def test_a1_unknown_fields_survive_a_round_trip(self, server, client):
        body = pod("a", brandNewField={"x": [1]}, cpu=2)
        created = await client.create(PODS, "default", body)
        assert created["spec"] == body["spec"]
        assert (await client.get(PODS, "default", "a"))["spec"] == body["spec"]

    async def test_create_sends_bytes_untouched(self, server, client):
        raw = b' {"metadata": {"name": "a"},\n "n": 1.0}'
        await client.create(PODS, "default", raw)
        assert server.requests[-1].body == raw

    async def test_create_options(self, server, client):
        options = CreateOptions(
            dry_run=True, field_validation="Strict", as_user="system:x", metadata_only=True
        )
        await client.create(PODS, "default", pod("a"), options)
        sent = server.requests[-1]
        assert sent.params == {"dryRun": "All", "fieldValidation": "Strict"}
        assert sent.headers["Impersonate-User"] == "system:x"
        assert "as=PartialObjectMetadata;" in sent.headers["Accept"]

    async def test_create_twice_already_exists(self, client):
        await client.create(PODS, "default", pod("a"))
        with pytest.raises(ApiError) as caught:
            await client.create(PODS, "default", pod("a"))
        assert caught.value.already_exists

    async def test_delete_carries_uid_and_propagation(self, server, client):
        uid = server.put("pods", pod("a"))["metadata"]["uid"]
        with pytest.raises(ApiError) as caught:
            await client.delete(PODS, "default", "a", DeleteOptions(uid="another"))
        assert caught.value.conflict
        options = DeleteOptions(
            uid=uid, resource_version="7", propagation="Foreground", grace_period_s=0
        )
        await client.delete(PODS, "default", "a", options)
        assert server.names("pods") == []
        assert content(server.requests[-1]) == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": "7"},
            "propagationPolicy": "Foreground",
            "gracePeriodSeconds": 0,
        }
        with pytest.raises(ApiError) as caught:
            await client.delete(PODS, "default", "a")
        assert caught.value.not_found

    async def test_deleting_no_name_never_deletes_the_collection(self, server, client):
        with pytest.raises(ApiError):
            await client.delete(PODS, "default", "")
        assert server.requests == []

    async def test_patches_are_fenced_by_what_the_caller_puts_in(self, server, client):
        version = server.put("pods", pod("a"))["metadata"]["resourceVersion"]
        fenced = {"metadata": {"resourceVersion": version}, "status": {"x": 1}}
        changed = await client.patch_status(PODS, "default", "a", fenced)
        assert int(changed["metadata"]["resourceVersion"]) > int(version)
        sent = server.requests[-1]
        assert sent.path == f"{IN_DEFAULT}/a/status"
        assert sent.headers["Content-Type"] == "application/merge-patch+json"
        with pytest.raises(ApiError) as caught:
            await client.patch(PODS, "default", "a", json.dumps(fenced).encode())
        assert caught.value.conflict
        assert server.requests[-1].path == f"{IN_DEFAULT}/a"

    async def test_a_replaced_status_is_fenced_by_uid_and_version(self, server, client):
        made = server.put("pods", pod("a") | {"spec": {"x": 1}, "status": {"old": 1}})["metadata"]
        uid, version = made["uid"], made["resourceVersion"]
        for wrong in (("another", version), (uid, "1")):
            with pytest.raises(ApiError) as caught:
                await client.replace_status(PODS, "default", "a", wrong, {"new": 1})
            assert caught.value.conflict
        await client.replace_status(PODS, "default", "a", (uid, version), {"new": 1})
        sent, stored = server.requests[-1], server.named("pods", "a")
        assert (sent.method, sent.path) == ("PUT", f"{IN_DEFAULT}/a/status")
        assert content(sent).keys() == {"apiVersion", "kind", "metadata", "status"}
        assert (stored["spec"], stored["status"]) == ({"x": 1}, {"new": 1})

    async def test_dry_runs_say_so(self, server, client):
        server.put("pods", pod("a"))
        await client.dry_patch(PODS, "default", "a", {"spec": {"x": 1}})
        sent = server.requests[-1]
        assert (sent.method, sent.params) == ("PATCH", {"dryRun": "All"})
        await client.delete(PODS, "default", "a", DeleteOptions(dry_run=True))
        assert content(server.requests[-1])["dryRun"] == ["All"]

    async def test_access_review(self, server, client):
        server.fail("POST", REVIEWS, answer({"status": {"allowed": True}}))
        assert await client.self_subject_access_review(NODES, "ns", "list", as_user="u") is True
        sent = server.requests[-1]
        group = "authorization.k8s.io/v1"
        assert sent.path == f"/apis/{group}/selfsubjectaccessreviews"
        assert (content(sent)["apiVersion"], content(sent)["kind"]) == (
            group,
            "SelfSubjectAccessReview",
        )
        assert sent.headers["Impersonate-User"] == "u"
        assert content(sent)["spec"]["resourceAttributes"] == {
            "group": "", "version": "v1", "resource": "nodes", "namespace": "", "verb": "list",
            "name": "",
        }  # fmt: skip
        server.fail("POST", REVIEWS, answer({"status": {}}), answer({}))
        assert await client.self_subject_access_review(WRAPPERS, "ns", "get") is False
        with pytest.raises(BadAnswer, match="without a status"):
            await client.self_subject_access_review(WRAPPERS, "ns", "get")
        assert "Impersonate-User" not in server.requests[-1].headers


class TestRetries:
    async def test_reads_are_repeated(self, server, client, clock, monkeypatch):
        monkeypatch.setattr(client_module, "READ_ATTEMPT_S", 0.1)
        server.fail("GET", "/version", refuse(500), reset, refuse(429, Retry_After="2"), hang)
        server.fail_always("GET", "/version", answer({"major": "1"}))
        assert await client.read(Request("GET", "/version"), 10.0) == {"major": "1"}
        assert len(server.requests) == 5
        assert 2.0 in clock.sleeps

    async def test_a_read_of_garbage_is_repeated_and_then_reported(self, server, client):
        server.fail("GET", "/version", answer(b'{"major":'))
        server.fail("GET", "/version", answer({}))
        assert await client.read(Request("GET", "/version")) == {}
        server.fail_always("GET", "/version", answer(b"<html>"))
        with pytest.raises(BadAnswer):
            await client.read(Request("GET", "/version"))

    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            (refuse(500), ApiError),
            (refuse(503, Retry_After="1"), ApiError),
            (refuse(429), ApiError),
            (reset, ConnectionLost),
            (hang, RequestTimeout),
            (answer(b'{"metadata":'), BadAnswer),
        ],
        ids=["500", "503 with Retry-After", "429 without", "reset", "hang", "torn answer"],
    )
    async def test_p5_a_write_is_sent_once_and_its_outcome_reported(
        self, server, api, clock, fault, error
    ):
        enough_to_try_again = 0.1 if fault is hang else 5.0
        client = client_of(api, clock, timeout_s=enough_to_try_again)
        for method in ("POST", "DELETE", "PATCH"):
            server.fail_always(method, "/", fault)
        writes = (
            client.create(PODS, "default", pod("a")),
            client.delete(PODS, "default", "a"),
            client.patch_status(PODS, "default", "a", {}),
        )
        for write in writes:
            with pytest.raises(error) as caught:
                await write
            assert isinstance(caught.value, OutcomeUnknown) == (error is not ApiError)
        assert [request.method for request in server.requests] == ["POST", "DELETE", "PATCH"]
        assert clock.sleeps == []

    async def test_a_write_refused_with_retry_after_is_sent_again(self, server, client, clock):
        server.fail("POST", "/", refuse(429, Retry_After="3"))
        await client.create(PODS, "default", pod("a"))
        assert clock.sleeps == [3.0]
        assert len(server.requests) == 2

    async def test_p12_a_call_never_outlives_its_timeout(self, server, client, clock):
        server.fail_always("POST", "/", refuse(429, Retry_After="3"))
        before = clock.monotonic()
        with pytest.raises(ApiError):
            await client.create(PODS, "default", pod("a"), timeout=10.0)
        assert clock.monotonic() - before == 9.0


class TestLists:
    @pytest.fixture
    def many(self, server):
        for number in range(25):
            server.put("pods", pod(f"p{number:02}"))
        return server

    async def names(self, client: Client, **kwargs) -> tuple[list[str], list[tuple[bool, int]]]:
        names: list[str] = []
        pages = []
        async for page in client.list_pages(PODS, Selection("default"), **kwargs):
            if page.first:
                names = []
            names += [item["metadata"]["name"] for item in page.items]
            pages.append((page.first, len(page.items)))
        return names, pages

    async def test_a3_3_lists_come_in_pages_of_a_consistent_read(self, many, client):
        names, pages = await self.names(client, limit=10)
        assert names == [f"p{number:02}" for number in range(25)]
        assert pages == [(True, 10), (False, 10), (False, 5)]
        queries = [request.params for request in many.requests]
        assert [query.get("limit") for query in queries] == ["10"] * 3
        assert not any(
            key in query for query in queries for key in ("resourceVersion", "resourceVersionMatch")
        )

    async def test_an_expired_token_starts_the_list_again(self, many, client):
        many.tokens_to_expire = 1
        names, pages = await self.names(client, limit=10)
        assert names == [f"p{number:02}" for number in range(25)]
        assert pages == [(True, 10), (True, 10), (False, 10), (False, 5)]

    async def test_tokens_that_always_expire_end_in_one_piece(self, many, client):
        many.tokens_to_expire = 99
        names, pages = await self.names(client, limit=10)
        assert len(names) == 25
        assert pages == [(True, 10)] * 3 + [(True, 25)]
        assert "limit" not in many.requests[-1].params

    async def test_a_later_page_is_retried_where_it_is(self, many, client):
        pages = client.list_pages(PODS, Selection("default"), limit=10, retry_first_page=False)
        await anext(pages)
        many.fail("LIST", "/", refuse(503), reset)
        assert len((await anext(pages)).items) == 10
        await pages.aclose()

    async def test_the_next_page_is_asked_for_while_one_is_read(self, many, client):
        names, pages = await self.names(client, limit=10, ahead=True)
        assert names == [f"p{number:02}" for number in range(25)]
        assert pages == [(True, 10), (False, 15)]
        asked = []
        for ahead in (False, True):
            many.requests.clear()
            listed = client.list_pages(PODS, Selection("default"), limit=10, ahead=ahead)
            await anext(listed)
            await asyncio.sleep(0.05)
            asked.append(len(many.requests))
            await listed.aclose()
        assert asked == [1, 2]

    async def test_a_token_that_expires_ahead_starts_the_list_again(self, many, client):
        many.tokens_to_expire = 1
        names, pages = await self.names(client, limit=10, ahead=True)
        assert names == [f"p{number:02}" for number in range(25)]
        assert pages == [(True, 10), (True, 20), (False, 5)]

    @pytest.mark.parametrize(
        ("pages_of", "most", "limits"),
        [(10**6, 4_000, ["5", "10", "20"]), (10**6, 10, ["5", "10", "10"]), (1, 4_000, ["5"] * 5)],
    )
    async def test_small_pages_of_a_long_list_grow(
        self, many, client, monkeypatch, *, pages_of, most, limits
    ):
        monkeypatch.setattr("mcad.kube.pages.PAGE_BYTES", pages_of)
        monkeypatch.setattr("mcad.kube.pages.PAGE_LIMIT_MAX", most)
        await self.names(client, limit=5, ahead=True)
        assert [request.params["limit"] for request in many.requests] == limits

    async def test_a_page_that_is_not_wanted_any_more_is_not_waited_for(self, many, client):
        listed = client.list_pages(PODS, Selection("default"), limit=10, ahead=True)
        await anext(listed)
        (coming,) = [one for one in asyncio.all_tasks() if "list_pages" in str(one.get_coro())]
        await listed.aclose()
        await asyncio.wait([coming], timeout=5.0)
        assert coming.cancelled()

    async def test_the_first_page_is_left_to_callers_with_a_backoff(self, many, client, clock):
        many.fail("LIST", "/", refuse(503))
        with pytest.raises(ApiError):
            await self.names(client, retry_first_page=False)
        assert clock.sleeps == []

    async def test_the_first_page_is_retried_for_all_others(self, many, client):
        many.fail("LIST", "/", refuse(503))
        assert len((await client.list_all(PODS, Selection("default")))[0]) == 25

    async def test_list_all(self, server, client):
        for number in range(1001):
            server.put("pods", pod(f"p{number}"))
        server.tokens_to_expire = 1
        items, version = await client.list_all(PODS, Selection("default"))
        assert (len(items), version) == (1001, str(server.version))

    async def test_a_first_page_that_is_gone_is_an_error(self, many, client):
        many.fail_always("LIST", "/", refuse(410))
        with pytest.raises(ApiError):
            await asyncio.wait_for(client.list_all(PODS, Selection("default")), 2.0)
        assert len(many.requests) == 1

    async def test_selection_goes_out_and_metadata_can_be_enough(self, server, client):
        server.fail_always("GET", "/", answer({"metadata": {"resourceVersion": "1"}, "items": []}))
        await client.list_all(PODS, Selection(None, "a=b", "c=d", metadata_only=True))
        sent = server.requests[-1]
        assert sent.path == "/api/v1/pods"
        assert sent.params == {"labelSelector": "a=b", "fieldSelector": "c=d", "limit": "500"}
        assert "as=PartialObjectMetadataList" in sent.headers["Accept"]

    async def test_gos_null_is_an_empty_list(self, server, client):
        server.fail("GET", "/", answer({"metadata": {"resourceVersion": "1"}, "items": None}))
        assert await client.list_all(PODS, EVERYTHING) == ([], "1")

    @pytest.mark.parametrize("body", [{}, {"metadata": {}, "items": {}}, {"metadata": 1}])
    async def test_a_list_that_is_none(self, server, client, body):
        server.fail_always("GET", "/", answer(body))
        with pytest.raises(BadAnswer, match="not a list"):
            await client.list_all(PODS, EVERYTHING)
