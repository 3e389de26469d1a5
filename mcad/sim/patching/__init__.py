"""The three kinds of patch that an API server takes; none of them changes what it is given."""

from __future__ import annotations

from typing import Any

from mcad.sim.objects.mergekeys import MergeKeys, merge_keys
from mcad.sim.patching.jsonpatch import PatchError, json_patch
from mcad.sim.patching.strategic import strategic

__all__ = ["MergeKeys", "PatchError", "json_patch", "merge", "merge_keys", "strategic"]


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects are merged, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged
