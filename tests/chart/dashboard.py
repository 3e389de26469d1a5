"""The Grafana dashboard of the chart: ``python -m tests.chart.dashboard`` writes it anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.chart.helm import CHART

Json = dict[str, Any]

DASHBOARD = CHART / "files" / "dashboard.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT, STAT_HEIGHT = 24, 8, 4
P = "[$__rate_interval]"


class Panel(NamedTuple):
    """One panel. ``queries`` are expressions with their legends; ``stacked`` areas add up."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    note: str = ""
    stacked: bool = False
    is_stat: bool = False
    width: int = 8


def stat(title: str, unit: str, expr: str, note: str = "") -> Panel:
    """One number."""
    return Panel(title, unit, ((expr, ""),), note, is_stat=True, width=4)


def by(label: str, expr: str) -> tuple[str, str]:
    """A query with the label as its legend; "" is shown as *none*."""
    return expr, f"{{{{{label}}}}}"


def quantiles(
    name: str, *labels: str, where: str = "", window: str = P
) -> tuple[tuple[str, str], ...]:
    """The middle and the 95th percentile of a histogram."""
    keys = ", ".join((*labels, "le"))
    legend = "".join(f" {{{{{label}}}}}" for label in labels)
    return tuple(
        (
            f"histogram_quantile({q}, sum by ({keys}) (rate({name}_bucket{where}{window})))",
            f"{word}{legend}",
        )
        for q, word in ((0.5, "p50"), (0.95, "p95"))
    )


LEAF = '{leaf=~"$leaf"}'
TREE = '{tree=~"$tree"}'
READY = "mcad_ready_wait_seconds"
OURS = " * on (instance) group_left () mcad_build_info"
"""Of all processes in a cluster, those of the dispatcher."""

ROWS: dict[str, tuple[Panel, ...]] = {
    "Now": (
        stat("Leaders", "none", "sum(mcad_leader)", "One process leads; the others stand by."),
        stat("Pending", "none", f"sum(mcad_pending_appwrappers{LEAF})"),
        stat("Dispatched", "none", f"sum(mcad_dispatched_appwrappers{LEAF})"),
        stat("Oldest pending", "s", f"max(mcad_oldest_pending_seconds{LEAF})"),
        stat("Evictions, 1 h", "none", f"sum(increase(mcad_preempted_total{LEAF}[1h]))"),
        stat(
            "Reserved for", "none", "sum(mcad_reservations)", "AppWrappers for which room is kept."
        ),
    ),
    "Queue": (
        Panel(
            "Pending by reason",
            "none",
            (by("reason", f"sum by (reason) (mcad_pending_appwrappers{LEAF}) > 0"),),
            "What AppWrappers wait for; docs/reference/lifecycle.md explains the reasons.",
            stacked=True,
        ),
        Panel(
            "Pending by leaf",
            "none",
            (by("leaf", f"sum by (leaf) (mcad_pending_appwrappers{LEAF})"),),
            "A leaf is tree/leaf of a quota tree; without a name: no quota.",
            stacked=True,
        ),
        Panel(
            "Oldest pending by leaf",
            "s",
            (by("leaf", f"max by (leaf) (mcad_oldest_pending_seconds{LEAF})"),),
        ),
        Panel("Wait until dispatched", "s", quantiles("mcad_queue_wait_seconds", where=LEAF)),
        Panel(
            "Dispatches and ends",
            "ops",
            (
                (f"sum(rate(mcad_dispatched_total{LEAF}{P}))", "dispatched"),
                (
                    f'sum(rate(mcad_finished_total{{leaf=~"$leaf",reason="Completed"}}{P}))',
                    "completed",
                ),
                (
                    f'sum(rate(mcad_finished_total{{leaf=~"$leaf",reason!="Completed"}}{P}))',
                    "failed or deleted",
                ),
                (f"sum(rate(mcad_requeued_total{LEAF}{P}))", "requeued"),
            ),
        ),
        Panel("Run time", "s", quantiles("mcad_run_seconds", "outcome", window="[1h]")),
    ),
    "Nodes": (
        Panel(
            "Use of allocatable",
            "percentunit",
            (
                by(
                    "resource",
                    "sum by (resource) (mcad_cluster_used) / "
                    "(sum by (resource) (mcad_cluster_allocatable) > 0)",
                ),
            ),
        ),
        Panel(
            "CPU",
            "none",
            tuple(
                (f'sum(mcad_cluster_{word}{{resource="cpu"}})', word)
                for word in ("allocatable", "used", "reserved", "free")
            ),
            "In cores; reserved is assumed for pods that are not bound yet.",
        ),
        Panel(
            "Memory",
            "bytes",
            tuple(
                (f'sum(mcad_cluster_{word}{{resource="memory"}})', word)
                for word in ("allocatable", "used", "reserved", "free")
            ),
        ),
        Panel(
            "Pods without a place, overcommitted nodes",
            "none",
            (
                ("sum(mcad_unplaced_pods)", "unplaced pods"),
                ("sum(mcad_overcommitted_nodes)", "overcommitted nodes"),
            ),
        ),
        Panel(
            "Room that is kept",
            "s",
            (by("reason", "max by (reason) (mcad_oldest_reservation_seconds)"),),
            "Age of the oldest reservation.",
        ),
        Panel(
            "Teardowns that wait, holds and pauses",
            "none",
            (
                by("kind", "sum by (kind) (mcad_stuck_teardowns)"),
                ("sum(mcad_held_resources)", "resources on hold"),
                by("scope", "sum by (scope) (mcad_dispatch_paused) > 0"),
            ),
        ),
    ),
    "Quota": (
        Panel(
            "Used of nominal",
            "percentunit",
            (
                (
                    f"max by (tree, node, resource) (mcad_quota_allocated{TREE}) / "
                    f"(max by (tree, node, resource) (mcad_quota_nominal{TREE}) > 0)",
                    "{{tree}}/{{node}} {{resource}}",
                ),
            ),
            "Above 100 %: borrowed.",
        ),
        Panel(
            "CPU borrowed",
            "none",
            (
                (
                    'max by (tree, node) (mcad_quota_borrowed{tree=~"$tree",resource="cpu"}) > 0',
                    "{{tree}}/{{node}}",
                ),
            ),
        ),
        Panel(
            "CPU that waits",
            "none",
            (
                (
                    'max by (tree, node) (mcad_quota_waiting{tree=~"$tree",resource="cpu"}) > 0',
                    "{{tree}}/{{node}}",
                ),
            ),
        ),
    ),
    "Evictions and attempts": (
        Panel(
            "Evictions in an hour",
            "none",
            (by("reason", f"sum by (reason) (increase(mcad_preempted_total{LEAF}[1h]))"),),
        ),
        Panel(
            "Requeued in an hour",
            "none",
            (by("reason", f"sum by (reason) (increase(mcad_requeued_total{LEAF}[1h])) > 0"),),
            stacked=True,
        ),
        Panel(
            "Dispatch, and until pods run",
            "s",
            (
                *quantiles("mcad_dispatch_duration_seconds"),
                (
                    f"histogram_quantile(0.95, sum by (le) (rate({READY}_bucket{P})))",
                    "pods run, p95",
                ),
            ),
        ),
    ),
    "API server and event loop": (
        Panel(
            "Requests by code",
            "reqps",
            (by("code", f"sum by (code) (rate(mcad_api_requests_total{P}))"),),
            stacked=True,
        ),
        Panel("Time until the answer", "s", quantiles("mcad_api_request_duration_seconds", "verb")),
        Panel(
            "Writes that wait",
            "none",
            (
                by("lane", "sum by (lane) (mcad_write_backlog)"),
                by("lane", "sum by (lane) (mcad_requests_in_flight)"),
            ),
        ),
        Panel(
            "Loop lag and pass over the queue, p99",
            "s",
            tuple(
                (f"histogram_quantile(0.99, sum by (le) (rate(mcad_{name}_bucket{P})))", legend)
                for name, legend in (
                    ("loop_lag_seconds", "loop lag"),
                    ("decision_duration_seconds", "pass"),
                )
            ),
        ),
        Panel(
            "Silence of watches",
            "s",
            (by("kind", "max by (kind) (mcad_stream_silence_seconds)"),),
        ),
        Panel(
            "Events left out or lost",
            "ops",
            (
                by(
                    "result",
                    f'sum by (result) (rate(mcad_event_writes_total{{result!="written"}}{P}))',
                ),
            ),
        ),
        Panel(
            "CPU",
            "none",
            (
                by(
                    "pod",
                    f"rate(process_cpu_seconds_total{P}){OURS}",
                ),
            ),
            "Cores of each process.",
        ),
        Panel(
            "Memory",
            "bytes",
            (
                by(
                    "pod",
                    f"process_resident_memory_bytes{OURS}",
                ),
            ),
        ),
        Panel(
            "Garbage collections",
            "ops",
            (
                by(
                    "generation",
                    f"sum by (generation) (rate(python_gc_collections_total{P}){OURS})",
                ),
            ),
        ),
    ),
}


def dashboard() -> Json:
    """The whole dashboard."""
    return {
        "uid": "mcad",
        "title": "mcad",
        "description": "The AppWrapper dispatcher: queue, waits, nodes, quota, evictions, API.",
        "tags": ["mcad", "kubernetes"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": [*_variables()]},
        "panels": [*_placed()],
    }


def _variables() -> Iterator[Json]:
    yield {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {"text": "default", "value": "default"},
        "hide": 0,
    }
    for name, metric in (("leaf", "mcad_oldest_pending_seconds"), ("tree", "mcad_quota_nominal")):
        query = f"label_values({metric}, {name})"
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
            "hide": 0,
        }


def _placed() -> Iterator[Json]:
    """The panels row by row, from left to right."""
    number, top = 1, 0
    for title, panels in ROWS.items():
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": title, "gridPos": place, "panels": []} | {
            "collapsed": False
        }
        number, top, left, height = number + 1, top + 1, 0, 0
        for panel in panels:
            if left + panel.width > WIDTH:
                top, left = top + height, 0
            height = STAT_HEIGHT if panel.is_stat else HEIGHT
            place = {"x": left, "y": top, "w": panel.width, "h": height}
            yield {"id": number, "gridPos": place} | _rendered(panel)
            number, left = number + 1, left + panel.width
        top += height


def _rendered(panel: Panel) -> Json:
    made: Json = {
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": SOURCE,
                "expr": expr,
                "legendFormat": legend or "__auto",
                "range": not panel.is_stat,
                "instant": panel.is_stat,
            }
            for at, (expr, legend) in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {},
    }
    if panel.note:
        made["description"] = panel.note
    if panel.stacked:
        made["fieldConfig"]["defaults"]["custom"] = {
            "fillOpacity": 30,
            "stacking": {"mode": "normal", "group": "A"},
        }
    if not panel.is_stat:
        made["options"] = {
            "legend": {
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": True,
                "calcs": [],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    else:
        made["options"] = {
            "colorMode": "none",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "percentChangeColorMode": "standard",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "showPercentChange": False,
            "textMode": "auto",
            "wideLayout": True,
        }
    return made


def text() -> str:
    """The dashboard as the chart has it."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    DASHBOARD.write_text(text())
