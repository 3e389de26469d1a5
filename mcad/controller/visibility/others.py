"""Leaves out of an answer what a caller of one namespace may not see: AppWrappers of others."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

OTHER = "an AppWrapper of another namespace"

_TITLE = re.compile(r"([a-z0-9][a-z0-9-]*)/([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)")
_LISTS = ("ahead", "keptOffBy", "changes")
"""Lists of AppWrappers, of which only those of the namespace are shown."""


def without_others(view: Any, namespace: str, titles: Container[str]) -> Any:
    """The answer for a caller that may see one namespace. ``titles`` are NAMESPACE/NAME of all
    AppWrappers: where a text or a list names one of another namespace, it says so instead."""
    match view:
        case str():
            return _TITLE.sub(lambda found: _shown(found, namespace, titles), view)
        case dict():
            kept = {
                key: [one for one in value if _namespace(one) == namespace]
                if key in _LISTS
                else value
                for key, value in view.items()
            }
            return {key: without_others(one, namespace, titles) for key, one in kept.items()}
        case list() | tuple():
            return [without_others(one, namespace, titles) for one in view]
    return view


def _shown(found: re.Match[str], namespace: str, titles: Container[str]) -> str:
    return OTHER if found[1] != namespace and found[0] in titles else found[0]


def _namespace(row: dict[str, Any]) -> str:
    """That of a row, or of a change that names its AppWrapper."""
    return str(row["namespace"] if "namespace" in row else row["appwrapper"].partition("/")[0])
