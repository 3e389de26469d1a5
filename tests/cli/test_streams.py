"""What the process does when its output cannot be written, and at Ctrl-C before it has begun."""

import os
import subprocess
import sys

import pytest

FULL = "/dev/full"


def shell(redirection: str, *args: str) -> subprocess.CompletedProcess[str]:
    """``mcad ARGS`` in a shell, with its streams redirected so."""
    command = f'"$0" -m mcad "$@" {redirection}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *args], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("args", [("crd",), ("version",), ("--version",), ("--help",)])
@pytest.mark.parametrize(
    ("redirection", "why"),
    [(">&-", "Bad file descriptor"), (f">{FULL}", "No space left on device")],
)
def test_an_output_that_cannot_be_written_is_told(
    args: tuple[str, ...], redirection: str, why: str
) -> None:
    done = shell(redirection, *args)
    assert done.stderr == f"error: the output cannot be written: {why}\n"
    assert done.returncode == 1


@pytest.mark.parametrize("redirection", ["2>&-", f"2>{FULL}"])
def test_where_errors_cannot_be_written_the_exit_code_tells(redirection: str) -> None:
    assert shell(redirection, "no-such-command").returncode == 2
    assert shell(f">{FULL} {redirection}", "crd").returncode == 1
    assert shell(redirection, "version").returncode == 0


def test_output_into_a_closed_pipe_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "mcad", "crd"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


INTERRUPTED = """\
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["mcad", *{args!r}]
from mcad.cli.start import {entrance} as entrance
entrance()
"""


@pytest.mark.parametrize(
    ("entrance", "args", "module"),
    [
        ("main", ["crd"], "click"),
        ("main", ["crd"], "click.shell_completion"),
        ("main", ["crd"], "mcad.cli.main"),
        ("main", ["crd"], "mcad.cli.invocation"),
        ("main", ["crd"], "mcad.cli.commands.install"),
        ("main", ["queue"], "mcad.cli.commands.listing"),
        ("main", ["queue"], "asyncio"),
        ("main", ["queue"], "mcad.kube.client"),
        ("complete", [""], "mcad.cli.plugin"),
    ],
)
def test_an_interruption_while_modules_are_imported_is_one_line(
    entrance: str, args: list[str], module: str
) -> None:
    code = INTERRUPTED.format(entrance=entrance, args=args, module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nerror: interrupted\n")
