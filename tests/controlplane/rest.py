"""A synchronous client of the API server that needs only the standard library."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Reply = tuple[int, dict[str, Any]]


class Rest:
    """One kept-alive connection per thread; closed all together."""

    def __init__(self, url: str, ca_file: Path, token: str, user_agent: str) -> None:
        self._address = urlsplit(url).netloc
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._token = token
        self._user_agent = user_agent
        self._local = threading.local()
        self._opened: list[http.client.HTTPSConnection] = []

    def send(
        self, method: str, path: str, body: object = None, **options: str
    ) -> tuple[int, bytes]:
        """Status and body of the answer to a request with a JSON body, or with none."""
        status, _, raw = self.exchange(method, path, body, **options)
        return status, raw

    def exchange(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        token: str = "",
    ) -> tuple[int, Message, bytes]:
        """The same, with the headers of the answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {
            "Authorization": f"Bearer {token or self._token}",
            "Accept": accept,
            "User-Agent": self._user_agent,
            **({} if body is None else {"Content-Type": content_type}),
        }
        connection = self._connection()
        # An idle connection may have been closed by the server (it restarted, for one): that
        # deserves one more try. A new connection that breaks is news for the caller.
        kept_alive = connection.sock is not None
        try:
            return _exchange(connection, method, path, data, headers)
        except (ConnectionError, ssl.SSLError):
            if not kept_alive:
                raise
        return _exchange(connection, method, path, data, headers)

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def _connection(self) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(self._address, context=self._tls, timeout=30)
            self._local.connection = connection
            self._opened.append(connection)
        return connection


def _exchange(
    connection: http.client.HTTPSConnection,
    method: str,
    path: str,
    data: bytes | None,
    headers: dict[str, str],
) -> tuple[int, Message, bytes]:
    try:
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    except BaseException:
        connection.close()  # half a response must not be read as the next one's
        raise


def decoded(raw: bytes) -> dict[str, Any]:
    """The JSON object; {"text": ...} of a body that is no JSON, {"value": ...} of other JSON."""
    try:
        value = json.loads(raw)
    except ValueError:
        return {"text": raw.decode(errors="replace")}
    return value if isinstance(value, dict) else {"value": value}
