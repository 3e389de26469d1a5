"""The patches that an API server takes; none of them changes what it is given."""

from __future__ import annotations

from typing import Any

from mcad.sim.objects.mergekeys import MergeKeys, merge_keys
from mcad.sim.patching.strategic import PatchError, strategic

__all__ = ["MergeKeys", "PatchError", "apply", "merge", "merge_keys", "strategic"]


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


def apply(live: Any, wanted: Any) -> Any:
    """A server-side apply, as far as a CRD needs it: maps are merged, lists and all else replaced.

    Managers of fields are not kept: omitted fields stay, and there are no conflicts.
    """
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return wanted
    return live | {key: apply(live.get(key), value) for key, value in wanted.items()}
