"""``mcad``: imports a command when it is used, runs it, and ends with its exit code.

Every failure is one line on stderr, never a traceback. ``mcad.cli.start`` calls ``main``.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NoReturn

import click
from click.exceptions import NoSuchCommand
from click.shell_completion import CompletionItem

from mcad.cli.arguments.global_options import OPTIONS, check_taken, without_equals
from mcad.cli.errors import (
    EXIT_CODES,
    FAILED,
    INTERRUPTED,
    USAGE,
    exit_code,
    printed_warnings,
    show,
    show_error,
)
from mcad.cli.extras import MissingExtraError, extras_named
from mcad.cli.removed import advice
from mcad.cli.start import imported
from mcad.client.errors import McadError, clause, one_line
from mcad.client.figures.progress import shown_on
from mcad.version import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "submit": (
        "submit",
        "Create AppWrappers from files, checked before they are sent.",
    ),
    "lint": ("lint", "Check manifests of AppWrappers; nothing is submitted."),
    "wrap": ("wrap", "Make an AppWrapper of manifests of any kind."),
    "queue": (
        "listing",
        "Show the queue: its order, and what each AppWrapper waits for.",
    ),
    "get": ("listing", "Show all AppWrappers with their state and position."),
    "describe": (
        "describe",
        "Show one AppWrapper in full: demand, reasons, items, events.",
    ),
    "why": ("why", "Show why an AppWrapper waits, and what would start it now."),
    "what-if": (
        "what_if",
        "Show what the dispatcher would do if something differed.",
    ),
    "hold": ("hold", "Keep AppWrappers from starting until they are released."),
    "release": ("hold", "Let AppWrappers on hold queue again."),
    "requeue": (
        "requeue",
        "End AppWrappers that are dispatched; they queue again.",
    ),
    "priority": (
        "priority",
        "Set the priority of AppWrappers; higher goes first.",
    ),
    "cancel": (
        "cancel",
        "Delete AppWrappers with all of their objects.",
    ),
    "wait": (
        "wait",
        "Wait until AppWrappers are dispatched, running or at their end.",
    ),
    "tree": (
        "tree",
        "Show an AppWrapper with its items, their objects and the pods.",
    ),
    "logs": ("logs", "Print the logs of the pods of an AppWrapper."),
    "events": (
        "events",
        "Show the Events of an AppWrapper, its items and its pods.",
    ),
    "history": (
        "history",
        "Show AppWrappers that have ended: why, and what they took.",
    ),
    "capacity": (
        "capacity",
        "Show allocatable, used, reserved and free capacity.",
    ),
    "quota": (
        "quota",
        "Show quota trees: the quota of each team, used, borrowed and lent.",
    ),
    "pause": ("pause", "Stop dispatch in the whole cluster, a namespace or a quota node."),
    "resume": ("pause", "Resume dispatch."),
    "ui": ("ui", "Show queue, capacity and quota live in a browser."),
    "demo": ("demo", "See the dispatcher at work without a cluster."),
    "run": ("run", "Run the dispatcher."),
    "replay": ("replay", "Repeat the decisions of a journal."),
    "crd": ("install", "Print the CustomResourceDefinitions to install."),
    "rbac": (
        "install",
        "Print the roles and bindings that the dispatcher needs.",
    ),
    "migrate": (
        "migrate",
        "Migrate from MCAD, Kueue or an older version.",
    ),
    "debug": ("debug", "Check that it works, and collect what a bug report needs."),
    "completion": ("completion", "Print the completion script of a shell."),
    "version": ("version", "Print the version."),
}
"""Name -> (module of ``mcad.cli.commands`` that defines it, its line in ``mcad --help``)."""


def _listed(codes: Container[int]) -> str:
    return ", ".join(f"{code} {text}" for code, text in EXIT_CODES.items() if code in codes)


EPILOG = f"""\b
Exit codes: {_listed(range(INTERRUPTED))},
{_listed([INTERRUPTED])}.
Errors and warnings go to stderr, one line each; output goes to stdout.
Try `mcad COMMAND --help` for the options of a command."""


class Program(click.Group):
    """A group that imports commands on use, because the API client alone takes 0.25 s."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; ``McadError`` if it needs an extra of the package."""
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:
                return None
            raise NoSuchCommand(cmd_name, possibilities=COMMANDS, ctx=ctx)
        try:
            with extras_named(cmd_name):
                module = import_module(f"mcad.cli.commands.{COMMANDS[cmd_name][0]}")
        except MissingExtraError:
            if ctx.resilient_parsing:  # a completion prints no errors
                return None
            raise
        finally:
            gc.freeze()  # no garbage is looked for in what is imported, which stays:
            gc.enable()  # that took a tenth of the time
            imported()
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Also read ``-o=json``, as kubectl does."""
        return super().parse_args(ctx, without_equals(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and options with this prefix, without importing commands."""
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name][1]) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """click's ``main``, with our program name and our errors."""
        extra |= {"prog_name": _typed(), "complete_var": "_MCAD_COMPLETE", "standalone_mode": False}

        def call() -> Any:
            with printed_warnings(), shown_on(sys.stderr):
                return super(Program, self).main(*args, **extra)

        return _exit_with_code(call) if standalone_mode else call()


def _typed() -> str:
    """``kubectl mcad`` as a plugin, else ``mcad``."""
    return "kubectl mcad" if os.path.basename(sys.argv[0]) == "kubectl-mcad" else "mcad"


def _exit_with_code(call: Callable[[], Any]) -> NoReturn:
    _watch_stdout()
    try:
        code = call()
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = USAGE
    except click.UsageError as error:
        program = error.ctx.command_path if error.ctx else "mcad"
        told = advice(error) or clause(error.format_message())
        show_error(f"{told} (see `{program} --help`)")
        code = USAGE
    except click.ClickException as error:
        show_error(error.format_message())
        code = error.exit_code
    except McadError as error:
        show(error)
        code = exit_code(error)
    except (click.Abort, KeyboardInterrupt):
        show_error("interrupted")
        code = INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe
        code = FAILED
    except Exception as error:  # noqa: BLE001 - the user never gets a traceback
        show_error(_internal(error))
        code = FAILED
    _give_up_what_cannot_be_written()
    sys.exit(code if isinstance(code, int) else 0)


class _OutputError(McadError, OSError):
    """stdout cannot be written."""


class _Stdout(io.TextIOWrapper):
    """stdout with a distinct exception for failed writes."""

    def write(self, text: str, /) -> int:
        """Write; raises ``_OutputError``."""
        with _named_failures():
            return super().write(text)

    def flush(self) -> None:
        """Flush; raises ``_OutputError``."""
        with _named_failures():
            super().flush()


@contextmanager
def _named_failures() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _OutputError(f"the output cannot be written: {error.strerror}") from None


def _watch_stdout() -> None:
    """Make the stdout of the process a ``_Stdout``; writes to a closed one fail."""
    old = sys.__stdout__
    if old is None:
        old = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    elif sys.stdout is not old:  # a test's
        return
    encoding, errors, by_line = old.encoding, old.errors, old.line_buffering
    made = _Stdout(old.detach(), encoding, errors, line_buffering=by_line)
    sys.stdout = sys.__stdout__ = made  # type: ignore[misc]  # libraries ask the latter for its size


def _give_up_what_cannot_be_written() -> None:
    """Redirect broken streams, because a failed flush at exit would change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except AttributeError:  # closed before the start
            pass


def _internal(error: Exception) -> str:
    """The message for a bug, with its place in the code."""
    import traceback  # noqa: PLC0415 - for a bug only

    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return (
        f"internal error: {type(error).__name__}: {one_line(str(error))}{where}; please report it"
    )


def _with_global_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.group(cls=Program, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@_with_global_options
@click.version_option(__version__, message="mcad %(version)s", help="Print the version.")
@click.pass_context
def main(ctx: click.Context, /, **before: Any) -> None:
    """Dispatch AppWrappers: bundles of Kubernetes objects that start only when all of it fits.

    The options below may stand before or after the command, as in kubectl.
    """
    command = ctx.invoked_subcommand and Program.get_command(main, ctx, ctx.invoked_subcommand)
    if command:
        check_taken(command, before)


if __name__ == "__main__":
    main()
