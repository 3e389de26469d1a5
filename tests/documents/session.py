"""The commands of a page, typed as a reader would, on embedded clusters.

A block of ``sh`` is run and has to succeed; in a block of ``console`` each line after ``$`` is a
command, and what follows is what it prints. Before a block a comment may say

- ``<!-- cluster: --nodes 2 --cpu 4 -->``: from here on, on a new cluster, with the options of
  ``mcad demo --serve``. A page without one has the node of the tutorial.
- ``<!-- run: commands -->``: these come first, and a reader does not need them.
- ``<!-- with: NAME=mine NAMESPACE=default -->``: what these words in the block stand for.
- ``<!-- without: REGEX: reason -->``: commands of the block that match are not run.
- ``<!-- not run: reason -->``: this block is not run.

``...`` stands for any lines. Ages, times, random suffixes and widths of columns are not compared.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from mcad.api.config import Config
from mcad.cli.commands.demo import Shape
from mcad.client.config import load_config
from mcad.client.scope import Settings
from tests.cli.embedded import Embedded

ROOT = Path(__file__).parents[2]
RUNNABLE = ("sh", "bash", "console")
PATIENCE_S = 20.0
READS = re.compile(
    r"(mcad (why|queue|get|describe|tree|events|capacity|quota|what-if|top --once)|kubectl get)\b"
)
"""Commands that may be typed again, until they print what the page says."""

_BLOCK = re.compile(
    r"(?P<comments>(?:^<!--(?:(?!-->).)*-->\n\s*)*)^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = re.compile(r"<!-- (cluster|run|with|without|not run):\s*(.*?)\s*-->", re.DOTALL)


class Block(NamedTuple):
    """One block with commands: ``cluster`` if it begins a new one, ``before`` are the commands that
    come first, ``reason`` if it or the commands that match ``without`` are not run."""

    language: str
    text: str
    cluster: str | None
    before: str
    without: str
    reason: str

    @property
    def runs(self) -> bool:
        """Whether any of it is run."""
        return bool(self.without) or not self.reason


class Step(NamedTuple):
    """A command, and what it has to print; None if that is not compared."""

    command: str
    lines: list[str] | None


def blocks(page: Path) -> list[Block]:
    """All blocks with commands of a page."""
    return [
        _block(match["language"], match["text"], dict(_COMMENT.findall(match["comments"])))
        for match in _BLOCK.finditer(page.read_text())
        if match["language"] in RUNNABLE
    ]


def _block(language: str, text: str, said: Mapping[str, str]) -> Block:
    for pair in shlex.split(said.get("with", "")):
        word, _, value = pair.partition("=")
        text = re.sub(rf"\b{word}\b", value, text)
    without, _, reason = said.get("without", "").rpartition(": ")
    why = said.get("not run", reason)
    return Block(language, text, said.get("cluster"), said.get("run", ""), without, why)


def steps(block: Block) -> Iterator[Step]:
    """The commands of a block in their order."""
    yield from (Step(command, None) for command in statements(block.before))
    for step in _shown(block):
        if not (block.without and re.search(block.without, step.command)):
            yield step


def _shown(block: Block) -> Iterator[Step]:
    if block.language != "console":
        yield from (Step(command, None) for command in statements(block.text))
        return
    for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *lines = piece.splitlines()
        yield Step(command, lines)


class Session:
    """A terminal in a folder with the samples, with one cluster at a time."""

    def __init__(self, folder: Path, kubectl: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._cluster: Embedded | None = None
        self._clusters = 0
        (folder / "samples").symlink_to(ROOT / "samples")
        bin_ = folder / "bin"
        bin_.mkdir()
        (bin_ / "kubectl").symlink_to(kubectl)
        self._path = f"{bin_}{os.pathsep}{os.defpath}"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def play(self, page: Path) -> None:
        """Run all blocks of a page."""
        for block in blocks(page):
            if not block.runs:
                continue
            if block.cluster is not None or self._cluster is None:
                self._begin(block.cluster or "")
            for step in steps(block):
                run(step, self._type)

    def _begin(self, options: str) -> None:
        self._stack.close()
        folder = self._folder / f"cluster-{self._clusters}"
        folder.mkdir()
        self._clusters += 1
        shape, config, dispatches = _options(shlex.split(options))
        self._cluster = Embedded(folder, shape, config)
        self._stack.enter_context(self._cluster.running(dispatches=dispatches))

    def _type(self, command: str) -> tuple[int, str]:
        """Exit code and output. A pipe of nothing but ``mcad`` costs no process."""
        if not re.search(r"[;&<>$`(\n]", command):
            parts = [shlex.split(part, comments=True) for part in command.split(" | ")]
            if all(part[0] == "mcad" for part in parts):
                return self._mcad(parts)
        assert self._cluster is not None
        done = subprocess.run(
            ["bash", "-ec", f'mcad() {{ {shlex.quote(sys.executable)} -m mcad "$@"; }}\n{command}'],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
            env={
                "PATH": self._path,
                "HOME": str(self._folder),
                "KUBECONFIG": str(self._cluster.kubeconfig),
                "PYTHONPATH": str(ROOT),
            },
        )
        return done.returncode, done.stdout

    def _mcad(self, parts: Sequence[list[str]]) -> tuple[int, str]:
        assert self._cluster is not None
        stdin: str | None = None
        with chdir(self._folder):
            for part in parts:
                result = self._cluster.mcad(*part[1:], stdin=stdin)
                stdin = result.stdout
                if result.exit_code:
                    break
        return result.exit_code, result.output


def run(step: Step, type_: Callable[[str], tuple[int, str]]) -> None:
    """Type a command and compare; ``type_`` returns exit code and output. A command that reads is
    typed again until it prints what the page says."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        code, printed = type_(step.command)
        if step.lines is None:
            assert code == 0, f"{step.command}\n{printed}"
            return
        if says(printed, step.lines):
            return
        if not READS.match(step.command) or time.monotonic() > deadline:
            wanted = "\n".join(step.lines)
            raise AssertionError(f"$ {step.command}\n{printed}\nThe page says:\n{wanted}")
        time.sleep(0.2)


def statements(script: str) -> Iterator[str]:
    """The commands of a script: each with its here-document, its quotes and its continuations."""
    waiting: list[str] = []
    typed, end = "", ""
    for line in script.splitlines():
        waiting.append(line)
        if end:
            end = "" if line == end else end
        else:
            typed += f"{line}\n"
            here = re.search(r"<<(\w+)", line)
            end = here[1] if here else ""
        if not end and not line.endswith("\\") and _is_quoted(typed):
            if typed.strip() and not typed.startswith("#"):
                yield "\n".join(waiting)
            waiting, typed = [], ""


def _is_quoted(text: str) -> bool:
    """Whether all quotes are closed."""
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def says(printed: str, lines: Sequence[str]) -> bool:
    """Whether a command printed these lines; ``...`` stands for any.

    Lines that say *dispatched* one after the other may come in any order: AppWrappers of one pass
    are confirmed at the same time.
    """
    pattern = "".join(
        "(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + "\n"
        for line in _in_order(map(folded, lines))
    )
    text = "".join(line + "\n" for line in _in_order(map(folded, printed.rstrip().splitlines())))
    return re.fullmatch(pattern, text) is not None


def _in_order(lines: Iterable[str]) -> Iterator[str]:
    for is_dispatched, some in groupby(lines, lambda line: line.endswith(" dispatched")):
        found = list(some)
        yield from sorted(found) if is_dispatched else found


_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]"


def folded(line: str) -> str:
    """A line without what is of the moment: ages, times, random suffixes, widths of columns, and
    requests multiplied by a run time of seconds."""
    line = re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", line)
    line = re.sub(r"\b(\d+m)?\d+s\b", "<age>", line)
    line = re.sub(rf"-{_SUFFIX}{{8,10}}-{_SUFFIX}{{5}}\b", "-<suffix>", line)
    line = re.sub(r"-[0-9a-f]{10}-(?=\d)", "-<hash>-", line)
    line = re.sub(rf"-{_SUFFIX}{{5}}\b", "-<suffix>", line)
    line = re.sub(r"\bcpu=<?0\.00\d+,memory=[\d.]+Ki\b", "<requested hours>", line)
    return re.sub(r"\s+", " ", line).strip()


def _options(options: Sequence[str]) -> tuple[Shape, Config, bool]:
    """Of ``mcad demo --serve``, as far as pages use them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--cpu", default="8")
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--no-dispatcher", action="store_true")
    known = parser.parse_args(options)
    shape = Shape(known.nodes, known.cpu, gpu=known.gpu)
    return shape, load_config(Settings(None, tuple(known.set))), not known.no_dispatcher
