"""Copies share nothing that can change; trusted writes share what they do not touch."""

from random import Random

from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.copying import copied, with_own_metadata
from mcad.sim.registry import Registry


def test_copies_share_no_container():
    value = {"a": [1, {"b": []}], "c": {"d": "e"}, "f": None}
    copy = copied(value)
    assert copy == value
    copy["a"][1]["b"].append(1)
    copy["c"]["d"] = "x"
    assert value == {"a": [1, {"b": []}], "c": {"d": "e"}, "f": None}


def test_own_metadata_is_made_if_there_is_none():
    assert with_own_metadata({"a": 1}) == {"a": 1, "metadata": {}}


def test_what_a_trusted_writer_passes_is_not_changed():
    async def scenario():
        registry = Registry(VirtualClock(), Random(1))
        job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {}}}}
        pod = {"metadata": {"name": "p"}, "spec": {"containers": []}}
        kept = copied([job, pod])
        registry.create(registry.kind("batch/v1", "Job"), "default", job)
        kind = registry.kind("v1", "Pod")
        stored = registry.create(kind, "default", pod)
        assert [job, pod] == kept
        before = copied(stored)
        registry.patch(
            kind, ("default", "p"), lambda live: live | {"spec": live["spec"] | {"nodeName": "n"}}
        )
        registry.update(kind, ("default", "p"), {"metadata": {"name": "p"}, "spec": {}})
        assert stored == before

    run_virtually(scenario())
