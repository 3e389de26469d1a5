"""``mcad ui`` as users run it: its own process, and a browser's session as far as HTTP goes."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

MCAD = (sys.executable, "-m", "mcad")
LINE_START = "The page is at "


class UiProcess:
    """A context manager that ends the process and expects a clean end.

    With ``login`` a token, and the namespace that may be shown, go into the form of the page.
    """

    def __init__(
        self, kubeconfig: Path | str, *args: str, login: tuple[str, str] | None = None
    ) -> None:
        self._login = login
        args = (*args, "--login") if login is not None else args
        self._command = [*MCAD, "ui", "--no-browser", "--kubeconfig", str(kubeconfig), *args]
        self._opener = build_opener(HTTPCookieProcessor())

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        address = self._process.stdout.readline().removeprefix(LINE_START).strip()
        assert address.startswith("http://127.0.0.1:"), address
        self._url = address.partition("/?")[0].rstrip("/")
        if self._login is None:
            self._opener.open(address, timeout=30).close()
        else:
            self._log_in(*self._login)
        return self

    def _log_in(self, token: str, namespace: str) -> None:
        form = urlencode({"token": token, "namespace": namespace, "back": "/"}).encode()
        headers = {"Sec-Fetch-Site": "same-origin"}
        self._opener.open(Request(self._url + "/login", form, headers), timeout=60).close()

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        assert self._process.wait(20) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()

    def get(self, path: str = "/") -> tuple[int, str]:
        """Status and text of an answer."""
        try:
            with self._opener.open(self._url + path, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def events(self, path: str = "/events") -> Events:
        """What an open page is sent from now on."""
        return Events(self._opener.open(self._url + path, timeout=60))


class Events:
    """A stream that is read in a thread; ``parts`` has the latest HTML of each part."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.parts: dict[str, str] = {}
        self.text = ""
        self.is_over = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        name, data = "", []
        with suppress(OSError):
            for raw in self._answer:  # type: ignore[attr-defined]
                line = raw.decode().rstrip("\n")
                self.text += raw.decode()
                if line.startswith("event: "):
                    name, data = line.removeprefix("event: "), []
                elif line.startswith("data: "):
                    data.append(line.removeprefix("data: "))
                elif not line and name:
                    self.parts[name] = "\n".join(data)
        self.is_over = True
