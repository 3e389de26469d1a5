"""Built-in types: what a real server decodes, in its words, and its OpenAPI names."""

import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from mcad.sim.kinds import BUILTIN, Kind
from mcad.sim.objects import builtin
from mcad.sim.objects.decoding import decode
from mcad.sim.objects.quantities import canonical

KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTIN}


PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_project_asks_for_a_client_whose_models_tell_their_fields() -> None:
    """Those of 36 are plain classes: `mcad demo` ended in an AttributeError with it."""
    asked = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    client = next(one for one in map(Requirement, asked) if one.name == "kubernetes")
    assert not client.specifier.contains("36.0.3")
    assert client.specifier.contains(version("kubernetes"))


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
