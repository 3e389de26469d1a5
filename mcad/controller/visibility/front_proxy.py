"""Requests that kube-apiserver forwards: authenticates its front proxy and reads the caller.

The API server shows a client certificate and names the caller in headers; a ConfigMap publishes
which certificate and headers (Kubernetes documentation, "Configure the Aggregation Layer").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from mcad.api.wire import as_map, as_text
from mcad.controller.access import Caller

Json = dict[str, Any]
Headers = Iterable[tuple[str, str]]

PUBLISHED_IN = ("kube-system", "extension-apiserver-authentication")
"""Namespace and name of the ConfigMap."""


class FrontProxy(Struct, frozen=True):
    """How the front proxy authenticates, and its headers, in lower case.

    ``ca`` are certificates in PEM; ``names`` are the accepted common names, all if empty.
    """

    ca: str
    names: tuple[str, ...]
    user_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]

    def is_shown(self, certificate: Mapping[str, Any] | None) -> bool:
        """Whether a verified client certificate (of ``getpeercert``) is that of the front proxy."""
        if not certificate:
            return False
        subject = (pair for names in certificate.get("subject", ()) for pair in names)
        names = {value for key, value in subject if key == "commonName"}
        return not self.names or bool(names & set(self.names))

    def caller(self, headers: Headers) -> Caller | None:
        """The caller that the headers name, None without a user."""
        named = [(name.lower(), value) for name, value in headers]
        users = [value for wanted in self.user_headers for name, value in named if name == wanted]
        groups = [value for wanted in self.group_headers for name, value in named if name == wanted]
        extra: dict[str, list[str]] = {}
        for name, value in named:
            for prefix in self.extra_prefixes:
                if name.startswith(prefix):
                    extra.setdefault(unquote(name.removeprefix(prefix)), []).append(value)
        if not users or not users[0]:
            return None
        attributes = tuple((key, tuple(values)) for key, values in sorted(extra.items()))
        return Caller(users[0], tuple(groups), attributes)


def read_front_proxy(config_map: Json) -> FrontProxy | None:
    """The front proxy of the ConfigMap; None if it has none, or no header for the user."""
    data = as_map(config_map.get("data"))
    front_proxy = FrontProxy(
        ca=as_text(data.get("requestheader-client-ca-file")),
        names=_texts(data.get("requestheader-allowed-names")),
        user_headers=_headers(data.get("requestheader-username-headers")),
        group_headers=_headers(data.get("requestheader-group-headers")),
        extra_prefixes=_headers(data.get("requestheader-extra-headers-prefix")),
    )
    return front_proxy if front_proxy.ca.strip() and front_proxy.user_headers else None


def _headers(value: Any) -> tuple[str, ...]:
    return tuple(text.lower() for text in _texts(value) if text)


def _texts(value: Any) -> tuple[str, ...]:
    """The strings of a JSON array in a string; empty for anything else."""
    try:
        found = json.loads(as_text(value) or "[]")
    except ValueError:
        return ()
    return tuple(map(as_text, found)) if isinstance(found, list) else ()
