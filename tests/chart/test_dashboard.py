"""The dashboard of the chart: its queries are valid, and ask for metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.controller.metrics.declared import ALL, known_series
from tests.chart import dashboard
from tests.chart.helm import Helm, of_kind
from tests.chart.test_alerts import promtool, run_promtool
from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip

__all__ = ["promtool"]

Json = dict[str, Any]
NAME = re.compile(r"\b((?:mcad|process|python)_\w+)\b")


def checked(text: str, folder: Path) -> tuple[int, str]:
    """What Grafana's own description of its dashboards says about one."""
    tool = built_or_skip(binaries.ensure_checkdashboard)
    (folder / "dashboard.json").write_text(text)
    done = subprocess.run(
        [tool, folder / "dashboard.json"], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_it_is_as_grafana_describes_dashboards(tmp_path: Path) -> None:
    assert checked(dashboard.text(), tmp_path) == (0, "")
    wrong = json.loads(dashboard.text())
    wrong["panels"][1]["options"]["colour"] = "red"
    del wrong["panels"][2]["options"]["textMode"]
    code, said = checked(json.dumps(wrong), tmp_path)
    assert code == 1
    assert "panels[1].options" in said
    assert "colour" in said
    assert "panels[2].options.textMode: required field is missing" in said


def panels() -> list[Json]:
    made: list[Json] = dashboard.dashboard()["panels"]
    return made


def expressions() -> list[str]:
    return [one["expr"] for panel in panels() for one in panel.get("targets", ())]


def test_every_query_asks_for_metrics_that_exist() -> None:
    for expr in expressions():
        names = NAME.findall(expr)
        assert names, expr
        assert {*names} <= known_series(), expr
    variables = [one for one in dashboard.dashboard()["templating"]["list"] if "definition" in one]
    for one in variables:
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", one["definition"]).groups()
        assert label in ALL[metric].labels


def test_queries_ask_for_labels_that_their_metrics_have() -> None:
    for expr in expressions():
        labels = {label for name in NAME.findall(expr) for label in _labels(name)}
        asked = {one for keys in re.findall(r"by \(([^)]*)\)", expr) for one in keys.split(", ")}
        asked |= set(re.findall(r'[{,](\w+)[=!]~?"', expr))
        assert asked - {"le", "instance"} <= labels, expr


def _labels(series: str) -> tuple[str, ...]:
    one = ALL.get(series) or ALL.get(re.sub("_(bucket|count|sum)$", "", series))
    return one.labels if one is not None else ("generation",)


def test_every_side_of_the_dispatcher_has_its_panel() -> None:
    """Queue by reason and leaf, waits, use, quota, evictions, API and loop."""
    asked = {name for expr in expressions() for name in NAME.findall(expr)}
    for word in (
        "pending_appwrappers",
        "queue_wait_seconds_bucket",
        "cluster_allocatable",
        "quota_allocated",
        "preempted_total",
        "api_requests_total",
        "loop_lag_seconds_bucket",
    ):
        assert f"mcad_{word}" in asked


def test_panels_have_places_of_their_own() -> None:
    places = [(p["gridPos"], p["title"]) for p in panels()]
    assert len({p["id"] for p in panels()}) == len(places)
    for (one, title), (other, second) in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (title, second)
    assert all(place["x"] + place["w"] <= dashboard.WIDTH for place, _ in places)


def test_queries_are_valid(promtool: Path, tmp_path: Path) -> None:
    """As rules, with Grafana's variables filled in."""
    filled = [
        one.replace("$__rate_interval", "5m").replace("$leaf", ".*").replace("$tree", ".*")
        for one in expressions()
    ]
    rules = [{"record": f"dashboard:query:{at}", "expr": one} for at, one in enumerate(filled)]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"SUCCESS: {len(rules)} rules found" in run_promtool(promtool, "check", "rules", path)


@pytest.mark.parametrize(("namespace", "found"), [("", "mcad-system"), ("monitoring",) * 2])
def test_the_sidecar_of_grafana_finds_it(helm: Helm, namespace: str, found: str) -> None:
    objects = helm.template(dashboard={"enabled": True, "namespace": namespace})
    (made,) = [one for one in of_kind(objects, "ConfigMap") if "mcad.json" in one["data"]]
    assert made["metadata"]["namespace"] == found
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(made["data"]["mcad.json"]) == dashboard.dashboard()


def test_there_is_none_unless_asked_for(helm: Helm) -> None:
    assert not [o for o in of_kind(helm.template(), "ConfigMap") if "mcad.json" in o["data"]]
