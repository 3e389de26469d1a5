"""What the pages show is what happens: blocks are run, and what is printed is compared."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip

ROOT = Path(__file__).parents[2]
README, CLI = ROOT / "README.md", ROOT / "docs" / "use" / "command-line.md"
PYTHON = ".venv/bin/python"
WORDS_MAX = 900  # of the README

SECOND = "0002-aw-generic-deployment-2"
SUBMIT = (
    "{mcad} submit -f samples/aw-01.yaml --wait --timeout 60s >&2\n"
    "{mcad} submit -f samples/aw-02.yaml --wait --timeout 2s >&2 || true"
)


def blocks(page: Path, heading: str, language: str) -> list[str]:
    """The code blocks of one section of a page."""
    section = page.read_text().split(f"# {heading}\n", 1)[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A script of the README, typed at the root of the repository."""
    there = script.replace(PYTHON, shlex.quote(sys.executable))
    mine = f"demo --serve --kubeconfig {shlex.quote(str(folder / 'kubeconfig'))}"
    return subprocess.run(
        ["sh", "-ec", there.replace("demo --serve", mine)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ,
    )


def test_the_first_block_can_be_pasted(tmp_path: Path) -> None:
    tools = built_or_skip(binaries.ensure)
    (block,) = blocks(README, "Try it without a cluster", "sh")
    done = run(f"PATH={shlex.quote(str(tools))}:$PATH\n{block}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0001-aw-generic-deployment-1 created" in done.stdout
    assert "condition met" in done.stdout
    assert "deployment.apps/0001-aw-generic-deployment-1" in done.stdout


def sessions() -> dict[str, list[str]]:
    """The commands of the pages, each with what it is shown to print."""
    found: dict[str, list[str]] = {}
    for page, heading in (
        (README, "Your first AppWrapper"),
        (README, "Why does it wait?"),
        (CLI, "The command line"),
    ):
        (block,) = blocks(page, heading, "console")
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = piece.splitlines()
            found[command] = [line for line in lines if line != "..."]
    return found


def folded(line: str) -> str:
    """A line without what is of the moment: ages, the time, and the padding after them."""
    line = re.sub(r"\b\d\d:\d\d:\d\d UTC", "<time>", line)
    return re.sub(r"\s+", " ", re.sub(r"\b\d+(m\d+)?s\b", "<age>", line)).strip()


def test_the_tables_are_those_that_are_printed(tmp_path: Path) -> None:
    shown = {
        command: lines
        for command, lines in sessions().items()
        if command.startswith("mcad ") and "--watch" not in command
    }
    assert set(shown) == {"mcad queue", "mcad capacity", f"mcad why {SECOND}"}
    mcad = f"{PYTHON} -m mcad"
    said = "\n".join(f"echo '$ {one}'\n{one.replace('mcad', mcad, 1)}" for one in shown)
    script = f"{SUBMIT.format(mcad=mcad)}\n{said}"
    done = run(f"{mcad} demo --serve -- sh -ec {shlex.quote(script)}", tmp_path)
    assert done.returncode == 0, done.stderr
    for piece in re.split(r"^\$ ", done.stdout, flags=re.MULTILINE)[1:]:
        command, *lines = piece.splitlines()
        printed = list(map(folded, lines))
        assert [line for line in map(folded, shown[command]) if line not in printed] == []


def test_the_readme_is_short() -> None:
    assert len(README.read_text().split()) <= WORDS_MAX
