"""The page in the cluster: off by default, on loopback only, and its account only reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.helm import NAMESPACE, Helm, HelmError, of_kind
from tests.chart.rights import granted_to
from tests.chart.test_render import check_restricted

ON = {"ui": {"enabled": True}}
ACCOUNT = "mcad-ui"


def ui_of(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = (one for one in of_kind(objects, kind) if one["metadata"]["name"] == ACCOUNT)
    return found


def test_it_is_off_by_default(helm: Helm) -> None:
    assert not [one for one in helm.template() if one["metadata"]["name"].startswith(ACCOUNT)]


def test_only_a_forwarded_port_reaches_it(helm: Helm) -> None:
    objects = helm.template(**ON)
    pod = ui_of(objects, "Deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["ui", "--no-browser", "--all-namespaces", "--port=8081"]
    assert "ports" not in container
    assert pod["spec"]["serviceAccountName"] == ACCOUNT
    check_restricted(pod["spec"])
    labels = pod["metadata"]["labels"].items()
    services = [one["spec"] for one in of_kind(objects, "Service")]
    selectors = [one["selector"] for one in services if "selector" in one]
    assert selectors
    assert not [one for one in selectors if one.items() <= labels]
    policies = of_kind(objects, "NetworkPolicy")
    chosen = [p for p in policies if p["spec"]["podSelector"]["matchLabels"].items() <= labels]
    assert [one["spec"] for one in chosen] == [
        {"podSelector": chosen[0]["spec"]["podSelector"], "policyTypes": ["Ingress"]}
    ]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"visibility": {"enabled": False}, "config": {"quotaEnabled": True}},
        {"watchNamespaces": ["team-a"]},
        {"authorization": "none"},
    ],
    ids=["default", "more", "watch", "none"],
)
def test_its_account_reads_no_secrets_and_writes_nothing(
    helm: Helm, values: dict[str, Any]
) -> None:
    rights = granted_to(helm.template(**ON, **values), ACCOUNT, NAMESPACE)
    assert {one.verb for one in rights} <= {"get", "list"}
    own = {"appwrappers", "dispatchpauses", "events", "quotasubtrees"}
    reports = {one.resource for one in rights if "reports" in one.resource}
    assert {one.resource for one in rights} - reports <= own
    spaces = {one.namespace for one in rights if one.resource == "appwrappers"}
    assert spaces == ({"team-a"} if "watchNamespaces" in values else {""})


def test_with_a_login_its_account_has_no_rights(helm: Helm) -> None:
    proxy = {"name": "proxy", "image": "proxy:1"}
    objects = helm.template(ui={"enabled": True, "login": True, "extraContainers": [proxy]})
    pod = ui_of(objects, "Deployment")["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["ui", "--no-browser", "--login", "--port=8081"]
    assert pod["containers"][1] == proxy
    assert list(granted_to(objects, ACCOUNT, NAMESPACE)) == []
    assert pod["serviceAccountName"] == ACCOUNT
    assert pod["automountServiceAccountToken"] is True, "the volume has the CA of the cluster"


def test_a_port_that_needs_rights_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match="port"):
        helm.template(ui={"enabled": True, "port": 80})
