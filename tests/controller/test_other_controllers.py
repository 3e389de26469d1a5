"""What counts as a sign of another controller of AppWrappers, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.controller.other_controllers import integrates, last_write, latest_write, webhooks
from mcad.core.state.units import SECOND

Json = dict[str, Any]

NOW = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z
RECENTLY = "2025-12-31T23:59:30Z"


def configuration(path: str, service: str = "webhook-service", name: str = "x") -> Json:
    """As kubebuilder's manifests have it."""
    client = {"service": {"namespace": "ns", "name": service, "path": path}}
    return {"metadata": {"name": name}, "webhooks": [{"clientConfig": client}]}


@pytest.mark.parametrize(
    "path",
    [
        "/mutate-workload-codeflare-dev-v1beta2-appwrapper",
        "/validate-workload-codeflare-dev-v1beta2-appwrapper",
        "/validate-workload-codeflare-dev-v1-appwrapper",
    ],
)
def test_webhooks_for_appwrappers(path: str) -> None:
    (one,) = webhooks([configuration(path, "kueue-webhook-service", "kueue-validating")])
    assert str(one) == "kueue-validating (service ns/kueue-webhook-service)"
    assert one.settings == "kueue-manager-config"


@pytest.mark.parametrize(
    "one",
    [
        configuration("/mutate-batch-v1-job"),
        configuration("/mutate/fail"),  # a policy engine that looks at everything
        {"metadata": {"name": "x"}, "webhooks": [{"clientConfig": {"url": "https://x/mutate"}}]},
        {"metadata": {"name": "x"}},
        {"webhooks": [None, {"clientConfig": None}]},
    ],
)
def test_other_webhooks(one: Json) -> None:
    assert list(webhooks([one])) == []


@pytest.mark.parametrize(
    ("text", "active"),
    [
        ("integrations: {frameworks: [batch/job, workload.codeflare.dev/appwrapper]}", True),
        ("integrations: {frameworks: [batch/job]}", False),
        ("integrations: {}", True),  # its default
        ("kind: Configuration", True),
        ("integrations: [", True),
        ("", True),
    ],
)
def test_kueue_may_leave_appwrappers_alone(text: str, active: bool) -> None:
    assert integrates({"data": {"controller_manager_config.yaml": text}}) is active


def test_settings_that_are_none_switch_nothing_off() -> None:
    assert integrates({})


def appwrapper(name: str, *fields: Json) -> Json:
    return {"metadata": {"namespace": "a", "name": name, "managedFields": list(fields)}}


def write(manager: str, time: str = RECENTLY, subresource: str = "") -> Json:
    field = {"manager": manager, "operation": "Update", "time": time}
    return field | ({"subresource": subresource} if subresource else {})


def told_of(*appwrappers: Json) -> str:
    return latest_write(map(last_write, appwrappers), NOW)


@pytest.mark.parametrize(
    "field",
    [
        write("kueue"),
        write("mcad-controller"),
        write("mcad-controller", subresource="status"),
        write("manager", subresource="status"),
        write("codeflare-operator", subresource="status"),
    ],
)
def test_a_recent_write_of_another_controller(field: Json) -> None:
    told = told_of(appwrapper("quiet"), appwrapper("b", write("mcad"), field))
    assert told == f"{field['manager']!r} has written to AppWrapper a/b 30 s ago"


def test_the_latest_write_is_told() -> None:
    old, new = write("kueue"), write("kueue", "2025-12-31T23:59:50Z")
    assert "a/c 10 s ago" in told_of(appwrapper("b", old), appwrapper("c", new))


@pytest.mark.parametrize(
    "field",
    [
        write("manager", "2025-12-31T23:58:00Z", "status"),  # what was left behind
        write("kueue", "2025-12-31T23:58:59Z"),
        write("manager"),  # any operator may create AppWrappers
        write("mcad", subresource="status"),
        write("kubectl-edit", subresource="status"),
        write("kueue", "soon"),
        {"manager": None, "time": None},
        {},
    ],
)
def test_no_sign_of_another_controller(field: Json) -> None:
    assert told_of(appwrapper("b", field), {"metadata": None}, {}) == ""
