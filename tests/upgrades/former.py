"""A former version of the dispatcher from the history of this repository, beside the present one.

Its package gets a name of its own, so that both run in one process and on one virtual clock; the
port to the API server is translated.
"""

from __future__ import annotations

import importlib
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from mcad.api.config import Config
from mcad.kube.clock import Clock
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.port import Api, Request, Response, nothing
from tests.checkout import check_out

_IMPORT = re.compile(r"^(\s*(?:from|import) )mcad\b", re.MULTILINE)


class Former:
    """The modules of one version."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._errors = self._module("kube.errors")
        self._port = self._module("kube.port")

    def _module(self, name: str) -> ModuleType:
        return importlib.import_module(f"{self._package}.{name}")

    def client(self, api: Api, clock: Clock, rng: Random) -> Any:
        """Its Client, on a port of the present version."""
        return self._module("kube.client").Client(_Translated(api, self), clock, rng)

    def controller(self, client: Any, config: Config, identity: str) -> Any:
        """Its Controller, which leads from the beginning."""
        made = self._module("controller.runtime").Controller
        return made(client, self._config(config), identity=identity)

    def replica(self, client: Any, config: Config, identity: str) -> Any:
        """Its Replica, which stands by for the Lease; not in the first version."""
        made = self._module("controller.replica").Replica
        return made(client, self._config(config), identity=identity)

    def _config(self, config: Config) -> Any:
        """Its Config, with those settings that it knows."""
        known = self._module("api.config").Config
        names = {field.alias or name for name, field in known.model_fields.items()}
        said = config.model_dump(by_alias=True, exclude_unset=True)
        return known(**{name: value for name, value in said.items() if name in names})

    def translate(self, error: KubeError) -> Exception:
        """An error of the present transport as one of its own."""
        made = getattr(self._errors, type(error).__name__)
        if isinstance(error, ApiError):
            words: dict[str, Any] = {"details": error.details, "retry_after": error.retry_after}
            found: Exception = made(error.status, error.reason, error.message, **words)
        else:
            found = made(str(error))
        return found

    def response(self, response: Response) -> Any:
        """An answer as one of its own."""
        return self._port.Response(response.status, response.body, response.headers)


class _Translated:
    """Its port, on the present one."""

    def __init__(self, inner: Api, former: Former) -> None:
        self._inner = inner
        self._former = former

    async def request(self, request: Any, timeout: float | None = None) -> Any:
        """One exchange."""
        try:
            return self._former.response(await self._inner.request(_present(request), timeout))
        except KubeError as error:
            raise self._former.translate(error) from error

    async def stream(
        self, request: Any, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        """A watch."""
        try:
            async for line in self._inner.stream(_present(request), idle_timeout, opened):
                yield line
        except KubeError as error:
            raise self._former.translate(error) from error


def _present(request: Any) -> Request:
    return Request(
        request.method,
        request.path,
        request.params,
        request.body,
        request.content_type,
        request.headers,
    )


@contextmanager
def checked_out(commit: str) -> Iterator[Former]:
    """The version of this commit, in a temporary folder."""
    package = f"mcad_{commit}"
    with tempfile.TemporaryDirectory() as folder:
        check_out(commit, Path(folder), "mcad")
        tree = (Path(folder) / "mcad").rename(Path(folder) / package)
        for path in tree.rglob("*.py"):
            path.write_text(_IMPORT.sub(rf"\1{package}", path.read_text()))
        sys.path.insert(0, folder)
        try:
            yield Former(package)
        finally:
            sys.path.remove(folder)
            for name in [one for one in sys.modules if one.partition(".")[0] == package]:
                del sys.modules[name]
