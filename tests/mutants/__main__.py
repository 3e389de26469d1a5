"""``python -m tests.mutants [WORD...]``: which mutants the tests find; exit 1 if one survives.

With words, only the mutants whose module or name contains one of them. Each worker has a copy of
the tree, so the tree itself stays as it is.
"""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.tables import ROOT, Mutant, read

WORKERS = int(os.environ.get("WORKERS", "2"))
TIMEOUT_S = 240
COPIED = ("mcad", "tests", "benchmarks", "samples", "deploy", "docs")
FILES = ("pyproject.toml", "README.md", "Makefile")


def main(words: Sequence[str]) -> int:
    chosen = [
        one for one in read() if not words or any(w in f"{one.module} {one.name}" for w in words)
    ]
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        trees: queue.Queue[Path] = queue.Queue()
        for number in range(WORKERS):
            trees.put(_copy(Path(folder) / str(number)))
        with ThreadPoolExecutor(WORKERS) as pool:
            for mutant, verdict in pool.map(lambda one: (one, _judge(one, trees)), chosen):
                survivors += verdict != "found"
                print(f"{verdict:9} {mutant.module}: {mutant.name}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants found")
    return 1 if survivors else 0


def _copy(target: Path) -> Path:
    target.mkdir()
    for name in COPIED:
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, target / name)
    return target


def _judge(mutant: Mutant, trees: queue.Queue[Path]) -> str:
    tree = trees.get()
    try:
        module = tree / mutant.module
        text = module.read_text()
        module.write_text(mutant.mutate(text))
        try:
            return _run(mutant, tree)
        finally:
            module.write_text(text)
    finally:
        trees.put(tree)


def _run(mutant: Mutant, tree: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "HANGS"  # and so would CI: a test has to fail instead
    if done.returncode == 0:
        return "SURVIVED"
    if done.returncode != 1:
        raise RuntimeError(f"{mutant.name}: pytest ended with {done.returncode}:\n{done.stdout}")
    return "found"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
