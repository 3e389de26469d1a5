"""The README: its first block can be pasted, and it is short. tests/documents types the rest."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
README_TITLE = "mcad: a standalone AppWrapper dispatcher for Kubernetes"
PYTHON = ".venv/bin/python"
WORDS_MAX = 900  # of the README


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


def test_commands_are_on_path_as_it_says() -> None:
    """``make`` has set up ``.venv`` before; here it is the environment of the tests."""
    tools = built_or_skip(binaries.ensure)
    first, *_ = blocks(README, README_TITLE, "sh")
    path = first.splitlines()[-1]
    assert path.startswith('export PATH="$PWD/.venv/bin:$PATH"')
    scripts = shlex.quote(str(Path(sys.executable).parent))
    script = path.replace('"$PWD/.venv/bin', f'{scripts}:"{tools}')
    typed = "\nmcad version; kubectl mcad version; kubectl mcad -n x version"
    done = subprocess.run(
        ["sh", "-ec", script + typed], capture_output=True, text=True, check=True, env=os.environ
    )
    assert len(done.stdout.splitlines()) == 3
    assert done.stdout.startswith("mcad 0.")


def test_the_readme_is_short() -> None:
    shown = re.sub(r"<!--.*?-->", "", README.read_text(), flags=re.DOTALL)
    assert len(shown.split()) <= WORDS_MAX
