"""The settings that the Lease tells: read back as they were, and nothing private among them."""

import json
from pathlib import Path

import pytest

from mcad.api.config import Config
from mcad.api.published import ANNOTATION, is_of, publish, read_published
from mcad.api.removed_settings import REMOVED

WORLD = Path(__file__).parents[1] / "chart" / "former" / "world.json"
SETTINGS = Config(
    policy="StrictFIFO",
    quotaEnabled=True,
    watchNamespaces=["team-a"],
    impersonate={"serviceAccount": "secret-name"},
    maxPriority={"team-a": 3},
    autopilot={"monitorNodes": False},
    leaderElection={"namespace": "elsewhere"},
)


def test_what_is_published_is_read_back() -> None:
    found = read_published(publish(SETTINGS, "me"), Config())
    private = {"impersonate": None, "leader_election": Config().leader_election}
    assert found.config == SETTINGS.model_copy(update=private)
    assert found.unknown == ()


def test_nothing_private_is_published() -> None:
    text = publish(SETTINGS, "me")
    assert "secret-name" not in text
    assert "elsewhere" not in text


def test_what_the_caller_gives_wins() -> None:
    found = read_published(publish(SETTINGS, "me"), Config(policy="Backfill"))
    assert (found.config.policy, found.config.quota_enabled) == ("Backfill", True)


def test_settings_of_a_later_version_are_named_and_left_out() -> None:
    told = json.loads(publish(SETTINGS, "me"))
    told["settings"]["later"] = 1
    found = read_published(json.dumps(told), Config())
    assert (found.config.policy, found.unknown) == ("StrictFIFO", ("later",))


def test_removed_settings_of_a_former_version_are_left_out() -> None:
    """They are named only if the dispatcher uses another value than the present one would."""
    told = json.loads(publish(SETTINGS, "me"))
    for name, removed in REMOVED.items():
        setting, _, inner = name.partition(".")
        place = told["settings"][setting] if inner else told["settings"]
        place[inner or setting] = removed.value
    before = read_published(publish(SETTINGS, "me"), Config())
    assert read_published(json.dumps(told), Config()) == before

    told["settings"]["potentialCapacity"] = {"cpu": 4}
    told["settings"]["faultTolerance"]["retryLimitCeiling"] = 9
    found = read_published(json.dumps(told), Config())
    assert found.config == before.config
    assert found.unknown == ("faultTolerance.retryLimitCeiling", "potentialCapacity")


def test_what_a_former_version_published_is_read() -> None:
    """As its dispatcher left it on a real API server."""
    world = json.loads(WORLD.read_text())
    text = world["lease"]["metadata"]["annotations"][ANNOTATION]
    assert "potentialCapacity" in json.loads(text)["settings"]
    found = read_published(text, Config())
    assert (found.config.backoff_time, found.unknown) == (5, ())
    assert "mcad-system" in found.config.excluded_namespaces


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"settings": 1}', '{"settings": {}}', '{"settings": {"policy": "X"}}'],
)
def test_what_makes_no_sense_is_none(text: str) -> None:
    assert read_published(text, Config()) is None


def test_what_a_process_published_counts_while_no_other_one_leads() -> None:
    text = publish(SETTINGS, "me")
    assert [is_of(text, holder) for holder in ("me", "", "an-older-version")] == [True, True, False]
    assert is_of("{", "me")
