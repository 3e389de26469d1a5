"""Objects are stored where the API server looks for them, and in its form."""

from __future__ import annotations

import json

import pytest

from benchmarks.fakecluster import FakeCluster
from benchmarks.start_real import SETTINGS_OF_6_KB
from benchmarks.stored import KINDS, texts


@pytest.mark.parametrize(
    ("plural", "folder"),
    [
        ("nodes", "/registry/minions/"),
        ("pods", "/registry/pods/"),
        ("appwrappers", "/registry/workload.codeflare.dev/appwrappers/"),
    ],
)
def test_an_object_is_stored_under_its_name(plural: str, folder: str) -> None:
    template = FakeCluster(appwrappers=3, nodes=3).templates[plural]
    found = list(texts(plural, template, 3))
    objects = [json.loads(text) for _, text in found]
    assert len({one["metadata"]["uid"] for one in objects}) == 3
    for (key, _), one in zip(found, objects, strict=True):
        metadata = one["metadata"]
        parts = [metadata.get("namespace"), metadata["name"]]
        assert key == folder + "/".join(filter(None, parts))
        assert "resourceVersion" not in metadata
        assert one["apiVersion"]
        assert one["kind"].lower() + "s" == plural
    assert set(KINDS) == {"nodes", "pods", "appwrappers"}


def test_the_appwrappers_of_a_start_have_6_kb_as_they_are_created() -> None:
    template = FakeCluster(appwrappers=3, nodes=3, settings=SETTINGS_OF_6_KB).templates[
        "appwrappers"
    ]
    (_, text), *_ = texts("appwrappers", template, 1)
    stored = json.loads(text)
    names = {key: stored["metadata"][key] for key in ("name", "namespace")}
    created = {key: stored[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": names}
    assert 5_950 < len(json.dumps(created, separators=(",", ":"))) < 6_050
    assert 7_800 < len(text) < 8_000
