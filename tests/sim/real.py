"""Requests to a real control plane with the Accept header of one's choice."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from tests.controlplane.controlplane import ControlPlane


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def get(plane: ControlPlane, path: str, accept: str = "application/json") -> Answer:
    connection = http.client.HTTPSConnection(
        urlsplit(plane.url).netloc, context=_tls(str(plane.ca_file)), timeout=30
    )
    try:
        headers = {"Authorization": f"Bearer {plane.admin_token}", "Accept": accept}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


@lru_cache
def _tls(ca_file: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)
