"""The examples of docs/use/python.md run as they stand, and are typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.embedded import Embedded
from tests.e2e.support import pod

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/use/python.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_examples_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(pod("job", "8")))
    (tmp_path / "other.yaml").write_text((ROOT / "samples/aw-01.yaml").read_text())
    with Embedded(tmp_path).running() as cluster:
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
        printed = [run(example) for example in EXAMPLES]
    assert len(printed) == 3
    first, second, third = printed
    assert "default/training: Running (pods: 1 running)" in first
    assert "<WhatIf: default/0001-aw-generic-deployment-1: absent -> starts>" in first
    assert second.startswith("node-1 Ready 0\n")
    assert "job Running" in second
    assert "default/training: Running (pods: 1 running)" in third
    assert third.endswith("['training']\n")


def run(example: str) -> str:
    """What an example prints."""
    done = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_are_typed(tmp_path: Path) -> None:
    files = []
    for number, example in enumerate(EXAMPLES):
        files.append(tmp_path / f"example_{number}.py")
        files[-1].write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
