"""Reads the log of a container, as a whole or as it grows, and prints it."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import click
from msgspec import Struct

from mcad.api.wire import as_list, as_map, as_text
from mcad.cli.errors import show, show_error, warn
from mcad.cli.pages.colours import printable
from mcad.client.appwrappers.pod_state import ENDED, has_started, phase_of, pod_state
from mcad.client.errors import McadError, explain
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError, RequestTimeout, api_error
from mcad.kube.kinds import PODS
from mcad.kube.port import Request

Json = dict[str, Any]

SILENCE_S = 86_400.0  # of a log that is followed
LOG_S = 60.0  # for a whole log
OK, NO_CONTENT = 200, 204
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


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
        names, notes = _containers(pod), as_map(pod["metadata"].get("annotations"))
        chosen = self._options.container or as_text(notes.get(DEFAULT_CONTAINER)) or names[0]
        if chosen not in names:
            name = pod["metadata"]["name"]
            raise McadError(f"pod {name} has no container {chosen}; choose {' or '.join(names)}")
        return chosen

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
        params = {"container": container}
        if options.tail is not None:
            params["tailLines"] = str(options.tail)
        if options.follow:
            params["follow"] = "true"
        path = PODS.path(metadata["namespace"], metadata["name"], "log")
        lines = self._lines(Request("GET", path, params))
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
        """The lines of a log; a stream would leave out a last one without an end of line."""
        if self._options.follow:
            async with aclosing(self._client.api.stream(request, SILENCE_S)) as stream:
                async for line in stream:
                    yield line
            return
        answer = await self._client.api.request(request, LOG_S)
        if answer.status != OK or not isinstance(answer.body, bytes):
            raise api_error(answer.status, answer.body)
        for line in answer.body.removesuffix(b"\n").split(b"\n") if answer.body else ():
            yield line


def _shown(line: bytes) -> str:
    """A line as it is for a pipe; on a terminal without what would control it."""
    text = line.decode(errors="replace")
    return printable(text.replace("\t", "    ")) if sys.stdout.isatty() else text


def _containers(pod: Json) -> Sequence[str]:
    spec = as_map(pod.get("spec"))
    every = [*as_list(spec.get("containers")), *as_list(spec.get("initContainers"))]
    return [as_text(as_map(one).get("name")) for one in every]
