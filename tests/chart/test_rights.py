"""The roles of the chart grant what ``mcad rbac`` grants, for every configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config
from mcad.api.rbac import OWNED_THROUGH, rules
from mcad.api.scale_up.objects import priority_class
from mcad.api.scale_up.settings import Via
from tests.chart.helm import NAMESPACE, Helm
from tests.chart.rights import granted_to
from tests.chart.test_render import IMPERSONATE, INVISIBLE, MATRIX, config_of

KINDS = {(one.group, one.resource): one.kind for one in WELL_KNOWN}


def wrapped(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"apiGroup": group, "resources": {name: KINDS[group, name]}} for group, name in pairs]


VALUES: dict[str, dict[str, Any]] = {
    name: values for name, values in MATRIX.items() if name not in ("own account", "secure metrics")
} | {
    "impersonated jobs": IMPERSONATE | {"wrappedResources": wrapped(("batch", "jobs"))},
    "group twice": {"wrappedResources": wrapped(("batch", "jobs"), ("batch", "cronjobs"))},
    **{
        f"scale-up by {via}": {"config": {"scaleUp": {"via": via}}}
        for via in ("off", False, *(one.value for one in Via))
    },
    "scale-up where it watches": MATRIX["watch"] | {"config": {"scaleUp": {"via": "auto"}}},
    "scale-up impersonating": IMPERSONATE | {"config": {"scaleUp": {"via": "PlaceholderPods"}}},
    "every owner": {"wrappedResources": wrapped(*OWNED_THROUGH)},
    **{
        f"{group} {name}": {"wrappedResources": wrapped((group, name))}
        for group, name in OWNED_THROUGH
    },
}


@pytest.mark.parametrize("values", VALUES.values(), ids=[name.replace(" ", "-") for name in VALUES])
def test_the_chart_grants_what_the_cli_prints(helm: Helm, values: dict[str, Any]) -> None:
    objects = helm.template(**values | INVISIBLE)
    account = values.get("fullnameOverride", "mcad")
    expected = granted_to(rules(config_of(objects), NAMESPACE, account), account, NAMESPACE)
    assert expected
    assert granted_to(objects, account, NAMESPACE) == expected


def test_the_chart_has_the_class_of_placeholder_pods(helm: Helm) -> None:
    """As ``mcad rbac`` prints it."""
    for via in Via:
        objects = helm.template(config={"scaleUp": {"via": via.value}}, **INVISIBLE)
        classes = [one for one in objects if one["kind"] == "PriorityClass"]
        for one in classes:
            del one["metadata"]["labels"]
        assert classes == ([priority_class()] if via is Via.PLACEHOLDER_PODS else [])


def test_another_account_gets_the_same_rights(helm: Helm) -> None:
    robot = {"create": False, "name": "robot"}
    objects = helm.template(serviceAccount=robot, **INVISIBLE)
    assert not kinds(objects) & {"ServiceAccount"}
    expected = granted_to(rules(Config(), NAMESPACE, "robot"), "robot", NAMESPACE)
    assert granted_to(objects, "robot", NAMESPACE) == expected


def test_rights_can_be_left_to_others(helm: Helm) -> None:
    objects = helm.template(rbac={"create": False, "aggregateToUserRoles": False})
    assert not {kind for kind in kinds(objects) if "Role" in kind}


def kinds(objects: Iterable[dict[str, Any]]) -> set[str]:
    return {one["kind"] for one in objects}
