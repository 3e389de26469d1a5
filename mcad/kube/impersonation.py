"""The headers of a request that is made as another user (``--as``, and ``as`` of a kubeconfig).

The API server checks whether the caller may impersonate that user, and answers as if it had asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from mcad.kube.errors import ConfigError

Pairs = tuple[tuple[str, str], ...]
"""Headers; the one of the groups comes once for each."""

KEYS = frozenset({"as", "as-uid", "as-groups", "as-user-extra"})
"""Of the user of a kubeconfig."""


def impersonation(entry: Mapping[str, Any]) -> Pairs:
    """The headers for the user of a kubeconfig; ``ConfigError`` for groups without a user."""
    name, uid = entry.get("as"), entry.get("as-uid")
    pairs = [("Impersonate-Uid", str(uid))] if uid else []
    pairs += [("Impersonate-Group", str(one)) for one in entry.get("as-groups") or ()]
    for key, values in (entry.get("as-user-extra") or {}).items():
        pairs += [(f"Impersonate-Extra-{quote(key, safe='')}", str(one)) for one in values]
    if pairs and not name:
        raise ConfigError("groups are impersonated with a user only: add --as USER")
    return (("Impersonate-User", str(name)), *pairs) if name else ()
