"""Every alert of the chart fires while its fault is there, alone, and clears after it.

The faults happen in the embedded cluster (recording.py); the rules are those that Helm renders,
with thresholds that do not take a day; Prometheus's own promtool evaluates them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.controller.metrics.declared import known_series
from tests.chart.helm import ROOT, Helm, only
from tests.chart.recording import FAULTS, Fault, Recording, record
from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip

Json = dict[str, Any]

RUNBOOKS = ROOT / "docs" / "operate" / "runbooks"


def groups(helm: Helm, **values: Any) -> list[Json]:
    rule = only(helm.template(prometheusRule={"enabled": True, **values}), "PrometheusRule")
    found: list[Json] = rule["spec"]["groups"]
    return found


def names_in(text: str) -> set[str]:
    """The metrics of an expression."""
    return set(re.findall(r"(?<![:\w])mcad_\w+(?![:\w])", text))


@pytest.fixture(scope="module")
def promtool() -> Path:
    return built_or_skip(binaries.ensure_promtool)


def test_rules_only_when_asked_for(helm: Helm) -> None:
    assert "PrometheusRule" not in {one["kind"] for one in helm.template()}


def test_every_alert_has_a_runbook_and_reads_metrics_that_exist(helm: Helm) -> None:
    url = "https://example.com/runbooks/"
    rules = [rule for group in groups(helm, runbookUrl=url) for rule in group["rules"]]
    read = {name for rule in rules for name in names_in(rule["expr"])}
    assert len(read) > 10
    assert read <= known_series()
    alerts = [rule for rule in rules if "alert" in rule]
    assert [one["alert"] for one in alerts] == [one.alert for one in FAULTS]
    pages = set()
    for alert in alerts:
        link = alert["annotations"]["runbook_url"]
        page = RUNBOOKS / link.removeprefix(url)
        assert page.is_file(), link
        assert page.read_text().startswith(f"# {alert['alert']}\n")
        assert alert["labels"]["severity"] in ("critical", "warning")
        pages.add(page)
    assert {*RUNBOOKS.glob("*.md")} - pages == {RUNBOOKS / "README.md"}


def test_the_rules_are_valid(helm: Helm, promtool: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": groups(helm)}))
    told = run_promtool(promtool, "check", "rules", "--lint=all", "--lint-fatal", rules)
    assert f"SUCCESS: {6 + len(FAULTS)} rules found" in told


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.alert)
def test_an_alert_fires_with_its_fault_and_clears_after_it(
    fault: Fault, helm: Helm, promtool: Path, tmp_path: Path
) -> None:
    rules = groups(helm, thresholds=dict(fault.thresholds))
    wanted = {name for group in rules for rule in group["rules"] for name in names_in(rule["expr"])}
    recording = record(fault, wanted)
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": rules}))
    test = tmp_path / "test.yaml"
    test.write_text(yaml.safe_dump(_test_of(recording), width=10**9))
    run_promtool(promtool, "test", "rules", test)


def _test_of(recording: Recording) -> Json:
    """A unit test of promtool: no alert, this alert, no alert."""
    fault = recording.fault
    firing = {"labels": f'{{alertname="{fault.alert}"}}', "value": 1}
    expr = 'group by (alertname) (ALERTS{alertstate="firing"})'
    times = ((recording.healthy, []), (recording.broken, [firing]), (recording.mended, []))
    return {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "name": fault.what,
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": " ".join(values)}
                    for name, values in recording.series.items()
                ],
                "promql_expr_test": [
                    {"expr": expr, "eval_time": f"{minute}m", "exp_samples": samples}
                    for minute, samples in times
                ],
            }
        ],
    }


def run_promtool(promtool: Path, *args: str | Path) -> str:
    """What promtool prints; it must not find anything wrong."""
    done = subprocess.run([promtool, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
