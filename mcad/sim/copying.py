"""Copies of JSON values: what ``copy.deepcopy`` does, several times faster."""

from typing import Any

from mcad.kube.types import Json


def copied(value: Any) -> Any:
    """The same value in dicts and lists of its own; scalars are shared, as they do not change."""
    kind = type(value)
    if kind is dict:
        return {key: copied(one) if type(one) in _CONTAINERS else one for key, one in value.items()}
    if kind is list:
        return [copied(one) if type(one) in _CONTAINERS else one for one in value]
    return value


_CONTAINERS = {dict, list}


def with_own_metadata(obj: Json) -> Json:
    """An object whose top level and metadata may be changed; the rest is shared."""
    return obj | {"metadata": dict(obj.get("metadata") or {})}
