"""Objects as text: read late, and read as Python's own decoder would read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.kube import document as module
from mcad.kube.decode import decode, take_line, take_list
from mcad.kube.document import HEAD, WHOLE, Document
from mcad.kube.errors import BadAnswer, KubeError
from mcad.kube.pages import Page
from mcad.kube.reflector import AT_ONCE, Reflector
from tests.api.strategies import JSON
from tests.kube.support import PODS, eventually, pod

Json = dict[str, Any]
NUMBERS = ["0", "-0", "0.1", "-0.0", "1e5", "1E-7", "1.0e16", "123456789012345678901234567890"]
NUMBERS += ["1e400", "2.2250738585072011e-308", "18446744073709551616", "-9223372036854775809"]


def document(**metadata: Any) -> Document:
    known = {"name": "a", "uid": "u", "resourceVersion": "7"}
    return Document(text({"metadata": known | metadata}), PODS)


def is_read(read: Callable[[bytes], object], raw: bytes) -> bool:
    try:
        read(raw)
    except ValueError:
        return False
    return True


def text(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


@given(JSON, st.booleans())
def test_a_text_is_read_as_python_reads_it(value: Any, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        expected = json.dumps(json.loads(raw))
    except ValueError:
        assert not is_read(decode, raw)
    else:
        assert json.dumps(decode(raw)) == expected


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_read_as_python_reads_it(number: str) -> None:
    value = decode(number.encode())
    assert (type(value), repr(value)) == (type(json.loads(number)), repr(json.loads(number)))


def test_of_a_key_that_is_there_twice_the_last_one_counts() -> None:
    assert decode(b'{"a": 1, "a": 2}') == {"a": 2}


BAD = [b"", b"{", b'{"a":}', b"[1,]", b"{} x", b'{"a":"\xff"}', b'{"a":01}', b'{"a":"\x01"}']
BAD.append(b"[" * 400 + b"]" * 400 + b"," + b"[" * 9000)  # cut short where it is deepest


@pytest.mark.parametrize("raw", BAD, ids=lambda raw: repr(raw[:20]))
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    assert not any(is_read(read, raw) for read in (decode, take_list, take_line))


ODD = [rb'"\ud800"', b"NaN", b"[" * 5000 + b"]" * 5000]


@pytest.mark.parametrize("odd", ODD, ids=["surrogate", "NaN", "deep"])
def test_one_odd_object_leaves_the_rest_of_a_list_readable(odd: bytes) -> None:
    good = b'{"metadata":{"name":"b","uid":"v","resourceVersion":"8"},"spec":1}'
    bad = b'{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"spec":' + odd + b"}"
    body = b'{"metadata":{"resourceVersion":"9"},"items":[' + bad + b"," + good + b"]}"
    first, second = (Document(one, PODS) for one in take_list(body).items or ())
    assert first.json()["metadata"]["name"] == "a"
    assert second.json()["spec"] == 1
    line = take_line(b'{"type":"ADDED","object":' + bad + b"}")
    assert Document(line.object, PODS).identity == first.identity


@pytest.mark.parametrize(
    "metadata",
    [{"name": ""}, {"name": None}, {"uid": 5}, {"resourceVersion": ""}, {"namespace": 5}],
)
def test_an_object_without_an_identity_is_a_bad_answer(metadata: Json) -> None:
    with pytest.raises(BadAnswer, match="without name, uid or resourceVersion"):
        document(**metadata)


@pytest.mark.parametrize("value", [None, 5, [], {}, {"metadata": 5}])
def test_what_is_no_object_is_a_bad_answer(value: Any) -> None:
    with pytest.raises(BadAnswer):
        Document(text(value), PODS)


def test_a_namespace_may_be_null() -> None:
    assert document(namespace=None).identity.namespace == ""


def test_a_pick_whose_types_differ_is_the_whole_object() -> None:
    class Picked(msgspec.Struct):
        metadata: dict[str, str]
        spec: int

    one = document(labels={})
    assert one.pick(msgspec.json.Decoder(Picked)) == one.json()


def test_what_was_read_at_once_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    whole = module._pick
    monkeypatch.setattr(
        module, "_pick", lambda raw, fields: read.append(fields) or whole(raw, fields)
    )
    fields, others = (msgspec.json.Decoder(dict[str, Any]) for _ in range(2))
    one = Document(
        text({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}), PODS, fields
    )
    expected = one.json()
    assert [one.pick(fields), one.pick(fields)] == [expected, expected]
    assert read == [fields]
    assert [one.pick(others), one.kept().pick(others)] == [expected, expected]
    assert read == [fields, others, others]


def test_what_was_read_whole_is_decoded_once_and_given_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = text({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}, "spec": [1, {}]})
    expected, one = Document(raw, PODS).json(), Document(raw, PODS, WHOLE)
    read: list[object] = []
    again = module._decode
    monkeypatch.setattr(module, "_decode", lambda raw: read.append(raw) or again(raw))
    assert one.pick(HEAD) == expected
    given = one.json()
    assert given == expected
    assert read == []
    given["spec"] = None  # the document keeps no part of it
    assert one.json() == expected
    assert one.kept().json() == expected
    assert read == [raw, raw]


@pytest.mark.parametrize("odd", [b'"\xff"', b"{", b"01"])
def test_what_cannot_be_read_whole_is_known_by_its_head(odd: bytes) -> None:
    head = b'{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"spec":'
    raw = msgspec.Raw(head + odd + b"}")
    try:
        expected: object = Document(raw, PODS).identity
    except BadAnswer:
        expected = None
    try:
        one = Document(raw, PODS, WHOLE)
    except BadAnswer:
        assert expected is None
        return
    assert one.identity == expected
    with pytest.raises(BadAnswer):
        one.json()


async def test_a_list_while_nothing_is_known_is_read_as_new_objects_are(
    server: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.put("pods", pod("a"))
    fields: list[object] = []
    usual = Page.documents
    monkeypatch.setattr(
        Page, "documents", lambda page, picks: fields.append(picks) or usual(page, picks)
    )
    reflector = Reflector(client, PODS, Sink(), Document.json)
    reflector.new_fields = WHOLE
    await reflector._list()
    await reflector._list()
    reflector.forget()
    await reflector._list()
    assert fields == [WHOLE, HEAD, WHOLE]


class Sink:
    def __init__(self) -> None:
        self.got: list[Json] = []
        self.errors: list[KubeError] = []
        self.syncs = 0

    def upserted(self, obj: Json) -> None:
        self.got.append(obj)

    def synced(self, *, relist: bool) -> None:
        self.syncs += 1

    def failing(self, error: KubeError) -> None:
        self.errors.append(error)

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


async def test_an_object_that_cannot_be_read_is_reported_when_it_can(
    server: Any, client: Any, clock: Any
) -> None:
    """It must not count as known while the sink has never heard of it."""
    server.put("pods", pod("a"))
    sink, tries = Sink(), iter([True, False])

    def slim(one: Document) -> Json:
        if next(tries):
            raise BadAnswer("not this time")
        return one.json()

    task = asyncio.ensure_future(Reflector(client, PODS, sink, slim).run())
    await eventually(lambda: sink.syncs)
    task.cancel()
    assert [one["metadata"]["name"] for one in sink.got] == ["a"]
    assert len(sink.errors) == 1


@pytest.mark.parametrize("at_once", [AT_ONCE, 10])
async def test_others_have_their_turns_while_a_page_is_read(
    server: Any, client: Any, at_once: int
) -> None:
    for number in range(4 * at_once):
        server.put("pods", pod(f"p{number}"))
    sink, between = Sink(), set()
    reflector = Reflector(client, PODS, sink, Document.json)
    reflector.at_once = at_once
    task = asyncio.ensure_future(reflector.run())
    while not sink.syncs:
        await asyncio.sleep(0)
        between.add(len(sink.got))
    task.cancel()
    assert between >= {at_once, 2 * at_once, 3 * at_once}
