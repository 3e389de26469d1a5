"""Questions about a row of figures: one AppWrapper, as the JSON of ``mcad.controller.views``."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def is_in_line(row: Json) -> bool:
    """Whether the AppWrapper has a position, known or unknown (None)."""
    return bool(row["position"] != 0)


def is_waiting(row: Json) -> bool:
    """Whether the AppWrapper waits: in the queue, or on hold."""
    return is_in_line(row) or bool(row["waitsFor"])


def within(rows: list[Json], namespace: str | None) -> list[Json]:
    """The rows of one namespace, or all of them."""
    return [row for row in rows if namespace in (None, row["namespace"])]


def in_namespace(namespace: str | None) -> str:
    """`` in namespace x``, for messages."""
    return f" in namespace {namespace}" if namespace else ""
