"""Quota as commands count it: with the trees that are there, if shares count at all."""

from __future__ import annotations

import json

import pytest

from mcad.kube.kinds import QUOTA_SUBTREES
from tests.cli.cluster import crowd
from tests.cli.conftest import Type
from tests.controller.test_quotas import subtree
from tests.fakeapi import SERVED, FakeApi, forbidden

ON = ("--set", "quotaEnabled=true")


@pytest.fixture
def api() -> FakeApi:
    """The crowd, of which everybody is of a leaf that has nothing."""
    api = crowd()
    api.served = (*SERVED, QUOTA_SUBTREES)
    api.put("quotasubtrees", subtree("root", root="4"))
    api.put("quotasubtrees", subtree("teams", "root", default="0"))
    return api


def waits_for(mcad: Type, name: str, *options: str) -> str:
    result = mcad("queue", "-A", "-o", "json", *options)
    assert result.exit_code == 0, result.output
    rows = {one["name"]: one for one in json.loads(result.stdout)["items"]}
    return str(rows[name]["why"])


def test_the_queue_is_judged_with_the_shares(mcad: Type, api: FakeApi) -> None:
    assert waits_for(mcad, "fits") == "It fits and is dispatched next."
    assert waits_for(mcad, "fits", *ON) == "It fits and is dispatched next."
    api.change("quotasubtrees", "teams", _hard)
    text = waits_for(mcad, "fits", *ON)
    assert text.startswith('Quota tree "gold", node "default": cpu: 500m requested')
    assert waits_for(mcad, "fits") == "It fits and is dispatched next."


def _hard(obj: dict) -> None:
    obj["spec"]["children"][0]["quotas"]["hardLimit"] = True


def test_trees_that_may_not_be_listed_or_are_not_installed_are_told(
    mcad: Type, api: FakeApi
) -> None:
    api.fail_always("LIST", "/quotasubtrees", forbidden)
    assert "you may not list quotasubtrees.quota.codeflare.dev" in mcad("queue", "-A", *ON).stderr
    api.recover()
    api.served = SERVED
    assert "QuotaSubtrees are not installed in this cluster" in mcad("queue", "-A", *ON).stderr
