"""``mcad debug bundle``, and what the HTTP port says for it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from mcad.api.appwrapper import parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.controller.http_port import application
from mcad.controller.replica import Replica
from mcad.core.state.model import Problem
from tests.cli.conftest import Type
from tests.controller.test_runtime import Rig, add_appwrapper
from tests.fakeapi import FakeApi, answer, content
from tests.serving import answering

Json = dict[str, Any]


def texts(path: Path) -> dict[str, str]:
    """The files of an archive."""
    with tarfile.open(path) as archive:
        return {
            one.name: (archive.extractfile(one) or path.open("rb")).read().decode()
            for one in archive.getmembers()
            if one.isfile()
        }


async def test_stacks_and_configuration_are_served_on_loopback() -> None:
    async with Rig(backoffTime=7) as rig:
        add_appwrapper(rig.server, "a", "500m")
        replica = Replica(rig.client, rig.controller.config, identity="test")
        app = application(replica)  # a standby says so, too
        async with TestClient(TestServer(app)) as client:
            answer = await client.get("/debug/stacks")
            text = await answer.text()
            assert "thread MainThread" in text
            assert "task " in text
            config = await (await client.get("/debug/config")).json()
            assert config["config"]["backoffTime"] == 7
            for path in ("/debug/stacks", "/debug/config"):
                refused = await client.get(path, headers={"Host": "evil.example"})
                assert refused.status == 403


def test_the_archive_has_what_can_be_read(mcad: Type, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    (journal / "1").write_text("frames")
    path = tmp_path / "x.tar.gz"
    done = mcad("debug", "bundle", "-o", str(path), "--journal", str(journal))
    assert done.exit_code == 0, done.output
    found = texts(path)
    assert found["mcad-debug/versions.txt"].startswith("mcad 0.")
    assert found["mcad-debug/journal/1"] == "frames"
    assert json.loads(found["mcad-debug/lease.json"])["metadata"]["name"] == "mcad-dispatcher"
    assert "  crd-appwrappers.workload.codeflare.dev.json  (not read)" in done.stdout
    assert "crd-appwrappers" in done.stdout
    assert "metrics.txt" not in done.stdout
    again = mcad("debug", "bundle", "-o", str(path))
    assert (again.exit_code, again.stderr) == (
        1,
        f"error: {path} exists; remove it, or choose another file with -o\n",
    )


def test_a_dispatcher_is_asked_at_its_port(mcad: Type, tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    with answering(answer({"items": []})) as url:
        done = mcad("debug", "bundle", "-o", str(path), "--server", url)
    assert done.exit_code == 0
    assert json.loads(texts(path)["mcad-debug/metrics.txt"]) == {"items": []}
    path.unlink()
    done = mcad("debug", "bundle", "-o", str(path), "--server", "127.0.0.1:9")
    assert done.exit_code == 0
    assert "  stacks.txt  (not read)" in done.stdout
    assert texts(path)["mcad-debug/stacks.txt"].startswith("not read: ")


# -- mcad debug check ----------------------------------------------------------------------------


def test_all_checks_pass_on_a_cluster_with_a_dispatcher(mcad: Type, api: FakeApi) -> None:
    done = mcad("debug", "check")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "ok      AppWrappers of default can be listed (2 found)",
        "ok      a dispatcher runs (mcad-1)",
        "ok      an AppWrapper can be created in default (dry run)",
        "ok      dispatch is not paused",
    ]
    (tried,) = api.seen("POST", "/appwrappers")
    assert tried.params["dryRun"] == "All"


def test_each_failed_check_is_named_with_its_reason(mcad: Type, api: FakeApi) -> None:
    api.remove("leases", "mcad-dispatcher")
    api.deny("appwrappers")
    done = mcad("debug", "check")
    assert done.exit_code == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["failed"] * 3 + ["ok"]
    first, second, third = done.stderr.splitlines()
    assert "cannot list" in first
    assert second == (
        "error: no process holds the Lease kube-system/mcad-dispatcher; look at the pods of mcad"
    )
    assert third.startswith("error: default/mcad-check cannot be created: ")


def problems_of(obj: Json) -> tuple[Problem, ...]:
    return parse(obj, catalog_of(Config(), WELL_KNOWN)).problems


@pytest.mark.parametrize(
    ("plurals", "kind"),
    [(["jobs", "cronjobs"], "Job"), (["cronjobs"], None)],
)
def test_the_dry_run_wraps_what_may_be_wrapped(
    plurals: list[str], kind: str | None, mcad: Type, api: FakeApi
) -> None:
    wrapped = json.dumps([{"apiGroup": "batch", "resources": plurals}])
    done = mcad("debug", "check", "--set", f"wrappedResources={wrapped}")
    assert done.exit_code == 0, done.output
    tried = [content(one) for one in api.seen("POST", "/appwrappers")]
    assert [problems_of(one) for one in tried] == [()] * len(tried)
    kinds = [one["spec"]["components"][0]["template"]["kind"] for one in tried]
    assert kinds == ([kind] if kind else [])
    assert ("not tried" in done.stdout) is (kind is None)


def test_a_pause_is_no_fault_but_is_told(mcad: Type, api: FakeApi) -> None:
    api.put("dispatchpauses", {"metadata": {"name": "upgrade"}, "spec": {"reason": "upgrade"}})
    done = mcad("debug", "check")
    assert done.exit_code == 0, done.output
    assert (
        "Dispatch is paused for the whole cluster (DispatchPause upgrade): upgrade" in done.stdout
    )
