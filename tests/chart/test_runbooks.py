"""Each alert has a page that names its metrics, and shows a command with its output."""

from __future__ import annotations

import re

import pytest

from tests.chart.helm import ROOT, Helm, only
from tests.documents.session import blocks, steps

RUNBOOKS = ROOT / "docs/operate/runbooks"
ALERTS = re.findall(r"^\| \[(\w+)\]\(([\w-]+\.md)\)", (RUNBOOKS / "README.md").read_text(), re.M)
RECORDED = {"mcad:loop_lag_seconds:p99_5m": "mcad_loop_lag_seconds"}


def metrics(expression: str) -> set[str]:
    """The metrics that an expression of Prometheus reads."""
    for name, recorded in RECORDED.items():
        expression = expression.replace(name, recorded)
    return set(re.findall(r"\bmcad_\w+", expression))


def test_each_alert_has_a_page(helm: Helm) -> None:
    assert {name for name, _ in ALERTS} == set(rules(helm))


def rules(helm: Helm) -> dict[str, str]:
    """The expression of each alert."""
    objects = helm.template(prometheusRule={"enabled": True})
    groups = only(objects, "PrometheusRule")["spec"]["groups"]
    return {
        one["alert"]: one["expr"] for group in groups for one in group["rules"] if "alert" in one
    }


@pytest.mark.parametrize(("alert", "page"), ALERTS)
def test_a_page_names_the_metric_and_shows_commands_with_output(
    helm: Helm, alert: str, page: str
) -> None:
    text = (RUNBOOKS / page).read_text()
    (line,) = re.findall(r"^\*\*Metric\.\*\* (.*)$", text, re.MULTILINE)
    assert metrics(rules(helm)[alert]) <= set(re.findall(r"`(mcad_\w+)`", line))
    shown = [step for block in blocks(RUNBOOKS / page) for step in steps(block)]
    assert any(step.lines for step in shown)
    assert re.search(r"^\*\*Do\*\*$", text, re.MULTILINE)
