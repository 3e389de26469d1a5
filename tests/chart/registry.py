"""A registry of images that takes what Helm pushes.

As much of the OCI distribution API as that needs.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Registry(ThreadingHTTPServer):
    """Without logins. ``manifests`` has the bytes by ``name:reference``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs: set[str] = set()
        self.manifests: dict[str, bytes] = {}

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.server_address[1]}"


@contextmanager
def registry() -> Iterator[Registry]:
    """One that listens."""
    with Registry() as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        try:
            yield one
        finally:
            one.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def log_message(self, *_: object) -> None:  # the tests print nothing
        pass

    def do_GET(self) -> None:
        body = self.server.manifests.get(_name(self.path))
        if body is None:
            self._answer(200 if self.path.rpartition("/")[2] in self.server.blobs else 404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:  # an upload begins
        self._answer(202, Location=f"{urlsplit(self.path).path}one")

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        url = urlsplit(self.path)
        if "/manifests/" in url.path:
            self.server.manifests[_name(url.path)] = body
        else:
            assert parse_qs(url.query)["digest"] == [digest]
            self.server.blobs.add(digest)
        self._answer(201, **{"Docker-Content-Digest": digest})

    def _answer(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()


def _name(path: str) -> str:
    """``name:reference`` of a manifest."""
    return ":".join(path.removeprefix("/v2/").split("/manifests/"))
