"""Objects are stored where the API server looks for them, and in its form."""

from __future__ import annotations

import json

from benchmarks.fakecluster import GROUP, FakeCluster
from benchmarks.start_real import SETTINGS_OF_6_KB
from benchmarks.stored import KINDS, texts


def test_an_object_is_stored_under_its_name() -> None:
    made = FakeCluster(appwrappers=3, nodes=3).templates
    folders = {"nodes": "minions", "pods": "pods", "appwrappers": f"{GROUP}/appwrappers"}
    assert set(KINDS) == set(folders)
    for plural, folder in folders.items():
        found = [(key, json.loads(text)) for key, text in texts(plural, made[plural], 3)]
        assert len({one["metadata"]["uid"] for _, one in found}) == 3
        for key, one in found:
            metadata = one["metadata"]
            parts = [metadata.get("namespace"), metadata["name"]]
            assert key == "/".join(filter(None, ["/registry", folder, *parts]))
            assert "resourceVersion" not in metadata
            assert one["apiVersion"]
            assert one["kind"].lower() + "s" == plural


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
