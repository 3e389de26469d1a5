"""Reads the log of a container, as a whole or as it grows, and prints it."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import click
from msgspec import Struct

from mcad.cli.errors import show, show_error, warn
from mcad.cli.pages.colours import printable
from mcad.client.appwrappers.pod_logs import NO_CONTENT, container_of, log_request, read_log
from mcad.client.appwrappers.pod_state import ENDED, has_started, phase_of, pod_state
from mcad.client.errors import McadError, explain
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError, RequestTimeout
from mcad.kube.port import Request

Json = dict[str, Any]

SILENCE_S = 86_400.0  # of a log that is followed


class LogOptions(Struct, frozen=True):
    """-f, --item, --tail and -c."""

    follow: bool = False
    item: int | None = None
    tail: int | None = None
    container: str | None = None


class LogReader:
    """Prints the log of one pod after the other, or of several at the same time."""

    def __init__(self, client: Client, options: LogOptions, *, prefixed: bool) -> None:
        """``prefixed``: each line begins with its pod."""
        self.well = True
        self.prefixed = prefixed
        self._client = client
        self._options = options

    def container_of(self, pod: Json) -> str:
        """The container to read; raises ``McadError`` if the pod has none of this name."""
        return container_of(pod, self._options.container)

    def is_ready(self, pod: Json) -> bool:
        """Whether there is a log to read: the container has started."""
        try:
            return has_started(pod, self.container_of(pod)) or phase_of(pod) in ENDED
        except McadError:
            return True  # which reading it tells

    async def read(self, pod: Json) -> None:
        """Print the log, until its end if it is followed; errors are printed."""
        name = pod["metadata"]["name"]
        try:
            container = self.container_of(pod)
            if not self.is_ready(pod):
                warn(f"pod {name} has not started ({pod_state(pod)})")
                return
            await self._print(pod, container)
        except McadError as error:
            self.well = False
            show(error)
        except KubeError as error:
            if isinstance(error, ApiError) and error.status == NO_CONTENT:  # it never had a node
                return
            self.well = False
            show_error(f"pod {name}: {explain(error).message}")

    async def _print(self, pod: Json, container: str) -> None:
        metadata, options = pod["metadata"], self._options
        more = {"follow": "true"} if options.follow else {}
        lines = self._lines(log_request(pod, container, options.tail, more))
        try:
            async with aclosing(lines):
                async for line in lines:
                    begin = f"[{metadata['name']}/{container}] " if self.prefixed else ""
                    click.echo(begin + _shown(line), color=True)
        except RequestTimeout:
            if not options.follow:
                raise
            warn(f"pod {metadata['name']} wrote nothing for a day; its log is no longer followed")

    async def _lines(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The lines of a log."""
        if self._options.follow:
            async with aclosing(self._client.api.stream(request, SILENCE_S)) as stream:
                async for line in stream:
                    yield line
            return
        body = await read_log(self._client, request)
        for line in body.removesuffix(b"\n").split(b"\n") if body else ():
            yield line


def _shown(line: bytes) -> str:
    """A line as it is for a pipe; on a terminal without what would control it."""
    text = line.decode(errors="replace")
    return printable(text.replace("\t", "    ")) if sys.stdout.isatty() else text
