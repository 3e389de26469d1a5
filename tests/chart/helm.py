"""Helm, as the tests use it: renders the chart, or installs it on a control plane."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "mcad"
RELEASE, NAMESPACE = "mcad", "mcad-system"


# The CRD takes the loader in Python a quarter of a second.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class HelmError(Exception):
    """Helm ended with an error; the message is what it wrote."""


class Helm:
    """One binary with a home of its own, so that nothing of the caller's gets in."""

    def __init__(self, binary: Path, home: Path) -> None:
        self._binary = binary
        self._env = {
            "PATH": os.defpath,
            "HOME": str(home),
            "HELM_CACHE_HOME": str(home / "cache"),
            "HELM_CONFIG_HOME": str(home / "config"),
            "HELM_DATA_HOME": str(home / "data"),
        }
        self._rendered: dict[str, str] = {}

    def run(self, *args: str, values: Object | None = None, kubeconfig: Path | None = None) -> str:
        """What Helm prints."""
        more = ["--values", "-"] if values is not None else []
        more += ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        done = subprocess.run(
            [str(self._binary), *args, *more],
            input=json.dumps(values) if values is not None else None,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise HelmError(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    def template(self, *args: str, **values: Any) -> list[Object]:
        """The objects of the chart with these values."""
        return self._objects("--skip-tests", *args, values=values)

    def tests(self, **values: Any) -> list[Object]:
        """The objects of ``helm test``."""
        return self._objects("--show-only", "templates/tests/check.yaml", values=values)

    def _objects(self, *args: str, values: Object) -> list[Object]:
        key = json.dumps([args, values])
        if key not in self._rendered:
            where = (RELEASE, str(CHART), "--namespace", NAMESPACE)
            text = self.run("template", *where, *args, values=values)
            objects = [one for one in yaml.load_all(text, _Loader) if one is not None]
            self._rendered[key] = json.dumps(objects)
        found: list[Object] = json.loads(self._rendered[key])
        return found

    def notes(self, **values: Any) -> str:
        """What is printed after an installation."""
        where = (RELEASE, str(CHART), "--namespace", NAMESPACE, "--dry-run=client")
        return self.run("install", *where, values=values).partition("NOTES:")[2]


def of_kind(objects: Iterable[Object], kind: str) -> list[Object]:
    """The objects of a kind, in order."""
    return [one for one in objects if one["kind"] == kind]


def only(objects: Iterable[Object], kind: str) -> Object:
    """The one object of a kind."""
    (found,) = of_kind(objects, kind)
    return found
