"""Figures as Kubernetes API objects: discovery, objects, lists, tables and errors.

The status of a report is the JSON of ``mcad.controller.views``. kubectl prints tables (Kubernetes
API concepts, "Receiving resources as Tables").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcad.api.list_page import PageFacts
from mcad.api.wire import to_json
from mcad.kube.kinds import (
    APPWRAPPER_REPORTS,
    CAPACITY_REPORTS,
    CLUSTER_REPORT,
    QUOTA_REPORTS,
    WHAT_IFS,
)
from mcad.kube.resource import Resource

Json = dict[str, Any]

COLUMNS = (
    ("Name", "string", "name", 0),
    ("Position", "integer", "", 0),
    ("State", "string", "", 0),
    ("Priority", "integer", "", 0),
    ("Waits-For", "string", "", 0),
    ("First-Seen", "date", "", 0),
    ("Why", "string", "", 1),
)
"""Name, type, format and priority; those of priority 1 are shown with -o wide."""


class Problem(Exception):  # noqa: N818 - it is answered as a Status
    """An error answer: HTTP status, reason, message, the name of a missing object, and causes as
    in ``details`` of a Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        name: str = "",
        *,
        causes: Sequence[Json] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.name = name
        self.causes = causes

    def document(self) -> Json:
        """The error as a Status object."""
        about: Json = {"group": APPWRAPPER_REPORTS.group, "name": self.name} if self.name else {}
        if self.causes:
            about["causes"] = self.causes
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": about,
            "code": self.code,
        }


def discovery() -> Json:
    """The resources of the group, for ``kubectl api-resources``."""
    kinds = (APPWRAPPER_REPORTS, CAPACITY_REPORTS, QUOTA_REPORTS)
    served = [_served(kind, kind.plural, ["get", "list"]) for kind in kinds]
    node = _served(QUOTA_REPORTS, f"{QUOTA_REPORTS.plural}/node", ["get"])
    why = _served(APPWRAPPER_REPORTS, f"{APPWRAPPER_REPORTS.plural}/why", ["get"])
    what_if = _served(WHAT_IFS, WHAT_IFS.plural, ["create"])
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": APPWRAPPER_REPORTS.api_version,
        "resources": [*served, node, why, what_if],
    }


def _served(kind: Resource, name: str, verbs: list[str]) -> Json:
    return {
        "name": name,
        "singularName": "" if "/" in name else kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
    }


def report(view: Json) -> Json:
    """An AppWrapperReport of a row or a detail."""
    metadata = {key: view[key] for key in ("namespace", "name", "uid")}
    return _head(APPWRAPPER_REPORTS, metadata) | {"status": view}


def what_if(view: Json) -> Json:
    """A WhatIf with its answer."""
    return _head(WHAT_IFS, {}) | {"status": view}


def cluster_report(kind: Resource, status: bytes) -> bytes:
    """The JSON text of the only report of a kind; ``status`` is JSON text."""
    head = to_json(_head(kind, {"name": CLUSTER_REPORT}))
    return head[:-1] + b',"status":' + status + b"}"


def listed(kind: Resource, items: Sequence[bytes], page: PageFacts | None = None) -> bytes:
    """The JSON text of a list of objects, or of a page of one."""
    about: Json = {"page": page} if page is not None else {}
    head = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "metadata": {}}
    return to_json(head | about)[:-1] + b',"items":[' + b",".join(items) + b"]}"


def table(rows: Sequence[bytes]) -> bytes:
    """The JSON text of a Table with these rows."""
    columns = [
        {"name": name, "type": kind, "format": form, "priority": priority, "description": name}
        for name, kind, form, priority in COLUMNS
    ]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}}
    text = to_json(head | {"columnDefinitions": columns})
    return text[:-1] + b',"rows":[' + b",".join(rows) + b"]}"


def table_row(view: Json) -> Json:
    """One row of a Table, from a row or a detail."""
    metadata = report(view)["metadata"]
    return {
        "cells": [
            view["name"],
            view["position"],
            view["state"],
            view["priority"],
            view["waitsFor"],
            view["firstSeen"],
            view["why"],
        ],
        "object": {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
        },
    }


def _head(kind: Resource, metadata: Json) -> Json:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {**metadata, "creationTimestamp": None},
    }
