"""Protobuf bodies: by hand, and object by object as a real API server writes them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mcad.sim.kinds import CRDS, KindTable
from mcad.sim.serving import protobuf
from mcad.sim.serving.protobuf import ProtobufError, UnknownKindError
from tests.controlplane.controlplane import ControlPlane


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    about = _field(1, api_version) + _field(2, kind)
    return b"k8s\x00" + _field(1, about) + _field(2, raw) + _field(3, "") + _field(4, "")


def _deployment() -> bytes:
    metadata = _field(1, "web") + _field(3, "") + _field(11, _field(1, "app") + _field(2, "web"))
    container = _field(1, "main") + _field(2, "nginx") + _field(5, "")
    template = _field(2, _field(2, container))
    return _field(1, metadata) + _field(2, _field(1, 0) + _field(3, template) + _field(7, 0))


def test_an_object_is_what_it_would_be_in_json() -> None:
    assert protobuf.decode(_envelope("apps/v1", "Deployment", _deployment())) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 0,  # behind a pointer in Go, so its zero was meant
            "template": {"spec": {"containers": [{"name": "main", "image": "nginx"}]}},
        },
    }


def test_negative_numbers_binary_data_quantities_and_alternatives() -> None:
    tolerated = _field(22, _field(1, "k") + _field(5, -3))
    amount = _field(1, "cpu") + _field(2, _field(1, "1500m"))
    port = _field(2, _field(2, _field(1, 1) + _field(2, 0) + _field(3, "http")))
    container = _field(1, "a") + _field(8, _field(2, amount)) + _field(10, _field(1, port))
    unmounted = _field(21, 0)  # behind a pointer, so False was meant
    pod = _field(2, _field(2, container) + unmounted + tolerated)
    assert protobuf.decode(_envelope("v1", "Pod", pod))["spec"] == {
        "containers": [
            {
                "name": "a",
                "resources": {"requests": {"cpu": "1500m"}},
                "livenessProbe": {"httpGet": {"port": "http"}},
            }
        ],
        "automountServiceAccountToken": False,
        "tolerations": [{"key": "k", "tolerationSeconds": -3}],
    }
    secret = _field(2, _field(1, "key") + _field(2, b"\xff\x00"))
    assert protobuf.decode(_envelope("v1", "Secret", secret))["data"] == {"key": "/wA="}


def test_unknown_fields_are_skipped() -> None:
    newer = _field(99, "x") + _varint(98 << 3 | 1) + b"12345678"
    pod = _field(1, newer + _field(1, "p"))
    assert protobuf.decode(_envelope("v1", "Pod", pod))["metadata"] == {"name": "p"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00",
        _envelope("v1", "Nothing", b""),
        _envelope("example.org/v1", "Thing", b""),
        _envelope("v1", "Pod", _field(1, 5)),
        _envelope("v1", "Pod", _field(1, _field(1, b"\xff"))),
        _envelope("v1", "Pod", b"\x0a\x05a"),
        _envelope("v1", "Pod", b"\x80"),
        _envelope("v1", "Pod", b"\xff" * 11),
        _envelope("v1", "Pod", b"\x0b"),
    ],
)
def test_other_bytes_are_an_error(body: bytes) -> None:
    with pytest.raises(ProtobufError):
        protobuf.decode(body)


def test_no_bytes_whatsoever_are_more_than_an_error() -> None:
    whole, chance = _envelope("apps/v1", "Deployment", _deployment()), Random(3)
    for _ in range(3000):
        broken = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            broken[chance.randrange(4, len(broken))] = chance.randrange(256)
        try:
            protobuf.decode(bytes(broken[: chance.randrange(5, len(broken) + 1)]))
        except ProtobufError:
            continue


@pytest.mark.controlplane
def test_every_object_of_a_real_api_server_is_the_same_in_both_forms(plane: ControlPlane) -> None:
    compared = 0
    for kind in KindTable().all():
        if "get" not in kind.verbs or kind.group == CRDS[0]:
            continue
        for item in plane.get(kind.resource.path())["items"]:
            metadata = item["metadata"]
            path = kind.resource.path(metadata.get("namespace"), metadata["name"])
            compared += _compare(plane, path)
    assert compared > 100


def _compare(plane: ControlPlane, path: str) -> bool:
    """Whether it could be compared: an object may change or go between two requests."""
    for _ in range(5):
        status, theirs = plane.request("GET", path)
        binary_status, binary = plane.raw("GET", path, accept=protobuf.MEDIA_TYPE)
        if (status, binary_status) != (200, 200):
            return False
        try:
            ours = protobuf.decode(binary)
        except UnknownKindError:
            return False
        if ours["metadata"].get("resourceVersion") == theirs["metadata"]["resourceVersion"]:
            _same(_tidy(ours), _tidy(theirs), path)
            return True
    return False


def _same(ours: Any, theirs: Any, path: str) -> None:
    """Equal, but for zeros that ours lacks: those that mean nothing look like any on the wire."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        lacking = {key for key in theirs if key not in ours}
        assert all(_is_zero(theirs[key]) for key in lacking), (path, lacking)
        assert set(ours) <= set(theirs), (path, set(ours) - set(theirs))
        for key, value in ours.items():
            _same(value, theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            _same(mine, other, f"{path}[{number}]")
    else:
        assert ours == theirs, path


def _is_zero(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_zero(one) for one in value.values())
    return value in ("", 0, False)


def _tidy(value: Any) -> Any:
    """Without nulls and empty maps, which stand for nothing; the form does not keep them."""
    if isinstance(value, dict):
        tidied = {key: _tidy(one) for key, one in value.items()}
        return {key: one for key, one in tidied.items() if one not in (None, {}, [])}
    return [_tidy(one) for one in value] if isinstance(value, list) else value
