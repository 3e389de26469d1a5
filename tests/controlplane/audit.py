"""The API server's own record of requests and their users."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

# Every request once: a watch when it starts (it may never end), everything else when it is done.
POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["watch"], "omitStages": ["ResponseComplete"]},
        {"level": "Metadata", "omitStages": ["ResponseStarted"]},
    ],
}

BEGIN = b'{"kind":"Event","apiVersion":"audit.k8s.io/'
BLOCK = 64 * 1024
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request. Fields that it does not have are empty."""

    time: datetime  # when the request arrived
    verb: str
    user: str
    api_group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    uri: str
    user_agent: str

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES


def read(log: Path, start: int = 0) -> list[AuditEntry]:
    """The entries from byte `start` on."""
    return list(map(_entry, events(log, start)))


def events(log: Path, start: int = 0) -> list[dict[str, Any]]:
    """The same as they were written. Half a line does not count: one that is still being written,
    and one that a kill cut short, after which the next line begins."""
    with log.open("rb") as file:
        file.seek(start)
        whole, _, _ = file.read().rpartition(b"\n")
    return [json.loads(line[line.rfind(BEGIN) :]) for line in whole.splitlines()]


def end(log: Path) -> int:
    """Where the last complete line ends. Reads the log from its end: it may be long."""
    with log.open("rb") as file:
        begin = file.seek(0, os.SEEK_END)
        while begin > 0:
            before, begin = begin, max(0, begin - BLOCK)
            file.seek(begin)
            if (found := file.read(before - begin).rfind(b"\n")) >= 0:
                return begin + found + 1
    return 0


def _entry(event: dict[str, Any]) -> AuditEntry:
    about = event.get("objectRef") or {}
    return AuditEntry(
        time=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        verb=event["verb"],
        user=event["user"].get("username", ""),
        api_group=about.get("apiGroup", ""),
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
        uri=event["requestURI"],
        user_agent=event.get("userAgent", ""),
    )
