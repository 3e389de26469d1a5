"""The figures of the core as JSON: what the HTTP port answers and what the CLI prints.

Amounts are Kubernetes quantities as strings, times RFC 3339, so that scripts can use them.
"""

from typing import Any

from mcad.api.wire import format_instant
from mcad.core.capacity import NodeReport
from mcad.core.model import Instant, Resources
from mcad.core.quantity import format_amount
from mcad.core.rows import Row, all_rows, queue_rows
from mcad.core.world import World

Json = dict[str, Any]


def rows_view(world: World, now: Instant, *, waiting_only: bool) -> Json:
    """``{"items": [...]}``: one object per AppWrapper, those in line first and in order."""
    rows = queue_rows(world, now) if waiting_only else all_rows(world, now)
    return {"items": [_row(row) for row in rows]}


def capacity_view(world: World) -> Json:
    """Per node and in total: allocatable, used, reserved, free; and reservations without a node."""
    report = world.capacity.totals()
    return {
        "nodes": [_node(node) for node in report.nodes],
        "total": _node(report.totals),
        "adrift": quantities(report.adrift),
    }


def quantities(amounts: Resources) -> dict[str, str]:
    """Amounts as Kubernetes quantities."""
    return {name: format_amount(name, amount) for name, amount in amounts}


def _row(row: Row) -> Json:
    return {
        "namespace": row.namespace,
        "name": row.name,
        "uid": row.uid,
        "position": row.position,
        "headOfLine": row.head,
        "state": row.state,
        "queuejobstate": row.queue_job_state,
        "priority": row.priority,
        "firstSeen": format_instant(row.first_seen),
        "demand": quantities(row.demand),
        "attempt": row.attempt,
        "waitsFor": row.waits_for,
        "why": row.why,
    }


def _node(node: NodeReport) -> Json:
    return {
        "name": node.name,
        "allocatable": quantities(node.allocatable),
        "used": quantities(node.used),
        "reserved": quantities(node.reserved),
        "free": quantities(node.free),
    }
