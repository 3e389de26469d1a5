"""Objects of Python client libraries as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def model_json(model: object) -> Any:
    """The object as it is sent: of ``kubernetes``, kr8s (``raw``) or lightkube (``to_dict``).

    Anything else is returned as it is.
    """
    if type(model).__module__.partition(".")[0] == "kubernetes":
        from kubernetes.client import ApiClient  # noqa: PLC0415 - takes half a second

        return ApiClient().sanitize_for_serialization(model)
    raw = getattr(model, "raw", None)
    if isinstance(raw, Mapping):
        return dict(raw)
    to_dict = getattr(model, "to_dict", None)
    return to_dict() if callable(to_dict) else model
