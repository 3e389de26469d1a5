"""Built-in types: what a real server decodes, in its words, and its OpenAPI names."""

from typing import Any

import pytest

from mcad.sim.kinds import BUILTIN, Kind
from mcad.sim.objects import builtin
from mcad.sim.objects.decoding import DecodeError, decode
from mcad.sim.objects.quantities import canonical

KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTIN}


def kind_of(api_version: str, kind: str) -> Kind:
    return KINDS[api_version, kind]


def decoded(obj: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    struct = builtin.type_of(kind_of(obj["apiVersion"], obj["kind"]))
    assert struct is not None
    return decode(obj, struct)


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


def container(**more: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "x", **more}])


@pytest.mark.parametrize("kind", BUILTIN, ids=lambda kind: kind.plural)
def test_every_kind_has_a_type(kind: Kind) -> None:
    struct = builtin.type_of(kind)
    assert struct is not None
    assert struct.name == kind.kind
    assert {"apiVersion", "kind", "metadata"} <= struct.fields.keys()


def test_unknown_fields_fall_away_and_are_named_in_order() -> None:
    obj = container(foo=1, Image="y") | {"foo": 1}
    obj["spec"]["bar"] = {"baz": 1}
    result, unknown = decoded(obj)
    assert result == container()
    assert unknown == ["spec.containers[0].foo", "spec.containers[0].Image", "spec.bar", "foo"]


def test_nulls_and_empty_lists_and_maps_fall_away() -> None:
    obj = container(command=None, args=[], env=[], resources={"requests": {}})
    obj["metadata"] |= {"labels": {}, "annotations": None, "creationTimestamp": None}
    assert decoded(obj)[0] == container(resources={})


def test_a_null_in_a_list_or_a_map_is_the_zero_value() -> None:
    obj = container(command=[None], resources={"requests": {"cpu": None}})
    obj["spec"]["nodeSelector"] = {"a": None}
    spec = decoded(obj)[0]["spec"]
    assert spec["nodeSelector"] == {"a": ""}
    assert spec["containers"][0]["command"] == [""]
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "0"}}


def test_times_are_written_in_utc() -> None:
    obj = pod()
    obj["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05.678+01:00"
    assert decoded(obj)[0]["metadata"]["creationTimestamp"] == "2026-01-02T02:04:05Z"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    spec = decoded(lease | {"spec": {"renewTime": "2026-01-02T03:04:05Z"}})[0]["spec"]
    assert spec == {"renewTime": "2026-01-02T03:04:05.000000Z"}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (pod(containers="x"), "spec.containers: a list is needed, not a text"),
        (
            pod(activeDeadlineSeconds=1.5),
            "spec.activeDeadlineSeconds: a whole number is needed, not a number",
        ),
        (pod(priority=2**31), "spec.priority: a whole number is needed, not a number"),
        (pod(hostNetwork="true"), "spec.hostNetwork: true or false is needed, not a text"),
        (pod(nodeSelector={"a": 1}), "spec.nodeSelector.a: a text is needed, not a number"),
        (
            container(ports=[{"containerPort": "80"}]),
            "spec.containers[0].ports[0].containerPort: a whole number is needed, not a text",
        ),
        (
            container(resources={"requests": "x"}),
            "spec.containers[0].resources.requests: a map is needed, not a text",
        ),
        (
            container(resources={"requests": {"cpu": "x"}}),
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            pod() | {"metadata": {"creationTimestamp": "x"}},
            'metadata.creationTimestamp: "x" is no time: write it like 2006-01-02T15:04:05Z',
        ),
        (pod() | {"spec": []}, "spec: a map is needed, not a list"),
        (
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "&&"}},
            "data.a: illegal base64 data",
        ),
    ],
)
def test_a_wrong_type_is_refused_with_the_field(obj: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decoded(obj)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2", "2"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("1024Ki", "1Mi"),
        ("1025Ki", "1025Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1e20", "100e18"),
        ("100e1", "1e3"),
        ("5.", "5."),
        ("+1", "+1"),
        ("0.1n", "1m"),
        ("0.123456", "124m"),
        ("0Ki", "0"),
        ("-0.5", "-500m"),
        ("16Ei", "9223372036854775807"),
    ],
)
def test_a_quantity_is_stored_in_canonical_form(given: str, stored: str) -> None:
    assert canonical(given) == stored


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "1_0", " 1", "1K", "1i", "1e"])
def test_what_is_not_a_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantit"):
        canonical(text)


def test_numbers_are_quantities_too() -> None:
    obj = container(resources={"limits": {"cpu": 2, "memory": 0.5}})
    limits = decoded(obj)[0]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "2", "memory": "500m"}


def test_a_custom_resource_definition_keeps_its_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"items": {"type": "string"}, "default": None}}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    obj = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"versions": [version]},
    }
    kept = decoded(obj)[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert kept["properties"] == {"a": {"items": {"type": "string"}}}
