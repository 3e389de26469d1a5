"""Server-side tables (``meta.k8s.io/v1`` Table): what ``kubectl get`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcad.kube.types import Json
from mcad.sim.kinds import Kind
from mcad.sim.serving.tables import cluster, namespaced, pods, workloads
from mcad.sim.serving.tables.custom import custom
from mcad.sim.serving.tables.printer import Printer, created_at

__all__ = ["table"]

_CREATED_AT = created_at()
_PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "configmaps"): namespaced.CONFIG_MAPS,
    ("", "events"): namespaced.EVENTS,
    ("", "namespaces"): cluster.NAMESPACES,
    ("", "nodes"): cluster.NODES,
    ("", "pods"): pods.PODS,
    ("", "secrets"): namespaced.SECRETS,
    ("", "serviceaccounts"): namespaced.SERVICE_ACCOUNTS,
    ("", "services"): namespaced.SERVICES,
    ("apps", "daemonsets"): workloads.DAEMON_SETS,
    ("apps", "deployments"): workloads.DEPLOYMENTS,
    ("apps", "replicasets"): workloads.REPLICAS,
    ("apps", "statefulsets"): workloads.STATEFUL_SETS,
    ("batch", "jobs"): workloads.JOBS,
    ("scheduling.k8s.io", "priorityclasses"): cluster.PRIORITY_CLASSES,
}


def table(  # noqa: PLR0913 - what a query can ask for, by name
    kind: Kind,
    objects: Sequence[Json],
    *,
    now_us: int,
    include: str = "Metadata",
    list_metadata: Json | None = None,
    with_columns: bool = True,
) -> Json:
    """The objects as rows.

    ``include`` is the query's ``includeObject``: Metadata, Object or None. ``list_metadata`` is
    that of the list that was asked for (resourceVersion, continue, remainingItemCount); without
    it, it is one object. ``now_us`` is in microseconds since the epoch. A watch sends the columns
    once, so its later tables come ``with_columns=False``.
    """
    printer = custom(kind) if kind.is_custom else _PRINTERS.get(kind.storage, _CREATED_AT)
    rows = [_row(printer, kind, obj, now_us, include) for obj in objects]
    if list_metadata is None:
        version = objects[0]["metadata"].get("resourceVersion") if objects else None
        list_metadata = {"resourceVersion": version} if version else {}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": printer.columns if with_columns else None,
        "rows": rows or printer.rows_of_nothing,
    }


def _row(printer: Printer, kind: Kind, obj: Json, now_us: int, include: str) -> Json:
    row: dict[str, Any] = {"cells": printer.cells(obj, now_us)}
    if kind.storage == ("", "pods") and (conditions := pods.row_conditions(obj)):
        row["conditions"] = conditions
    return row | {"object": _included(obj, include)}


def _included(obj: Json, include: str) -> Json | None:
    if include == "None":
        return None
    if include == "Object":
        return obj
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
