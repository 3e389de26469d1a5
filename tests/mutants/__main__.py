"""``python -m tests.mutants [WORD...]``: which mutants the tests find; exit 1 if one survives.

With words, only the mutants whose module or name contains one of them. Each worker has a copy of
the tree, so the tree itself stays as it is.

The tests of a mutant run without it first, so a test that fails anyway finds nothing. A mutant may
let them use ``SLOWER`` times the CPU time of that run and ``GRACE_S``: one that needs more never
ends (or is as good as endless), which a run of the suite shows as well. It is found, as "hang".
"""

from __future__ import annotations

import math
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.tables import ROOT, Mutant, read

WORKERS = int(os.environ.get("WORKERS", "2"))
SLOWER = 4  # a mutant than the run without it, in CPU time
GRACE_S = 20  # CPU time
UNLIMITED_S = 1200
LATE = -1
FOUND, HANG = "found", "hang"
_VERDICTS = {0: "SURVIVED", 1: FOUND, LATE: HANG}
IDLE = 6  # the wall clock may take so many times the CPU time: for mutants that wait, using none
COPIED = ("mcad", "tests", "benchmarks", "samples", "deploy", "docs")
FILES = ("pyproject.toml", "README.md", "Makefile")


def main(words: Sequence[str]) -> int:
    chosen = [
        one for one in read() if not words or any(w in f"{one.module} {one.name}" for w in words)
    ]
    with tempfile.TemporaryDirectory() as folder:
        trees: queue.Queue[Path] = queue.Queue()
        for number in range(WORKERS):
            trees.put(_copy(Path(folder) / str(number)))
        judges = Judges(trees)
        verdicts: Counter[str] = Counter()
        with ThreadPoolExecutor(WORKERS) as pool:
            for mutant, verdict in pool.map(lambda one: (one, judges.judge(one)), chosen):
                verdicts[verdict] += 1
                print(f"{verdict:9} {mutant.module}: {mutant.name}", flush=True)
    found = verdicts[FOUND] + verdicts[HANG]
    print(f"{found} of {len(chosen)} mutants found ({verdicts[HANG]} by a hang)")
    return 1 if found < len(chosen) else 0


def _copy(target: Path) -> Path:
    target.mkdir()
    for name in COPIED:
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, target / name)
    return target


class Judges:
    """Runs tests in copies of the tree, with a mutant and without."""

    def __init__(self, trees: queue.Queue[Path]) -> None:
        self._trees = trees
        self._usual: dict[tuple[str, ...], float] = {}  # CPU seconds by tests, without a mutant
        self._lock = threading.Lock()

    def judge(self, mutant: Mutant) -> str:
        """Whether its tests find the mutant."""
        tree = self._trees.get()
        try:
            usual = self._seconds(mutant.tests, tree)
            if usual is None:
                return "FAILS"  # its tests, without it
            limit = math.ceil(SLOWER * usual + GRACE_S)
            module = tree / mutant.module
            text = module.read_text()
            module.write_text(mutant.mutate(text))
            try:
                code = _run(mutant.tests, tree, limit)
            finally:
                module.write_text(text)
        finally:
            self._trees.put(tree)
        return _VERDICTS.get(code, f"ERROR {code}")  # 2: not even imported, which is no fine fault

    def _seconds(self, tests: tuple[str, ...], tree: Path) -> float | None:
        with self._lock:
            usual = self._usual.get(tests)
        if usual is None:
            before = _cpu_of_children()
            if _run(tests, tree, UNLIMITED_S) != 0:
                return None
            usual = _cpu_of_children() - before  # of all workers: the limit is generous anyway
            with self._lock:
                self._usual[tests] = usual
        return usual


def _run(tests: Sequence[str], tree: Path, limit: int) -> int:
    """The exit code of pytest, or ``LATE`` if it takes more than ``limit`` seconds of CPU time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit + 5))
    try:
        code = process.wait(IDLE * limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return LATE
    return LATE if code in (-signal.SIGXCPU, -signal.SIGKILL) else code


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
