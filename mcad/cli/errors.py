"""Failures as people meet them: one line that says what is wrong and what to do, and an exit code.

Commands raise ``CliError`` with the whole sentence; failures of the transport get theirs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

import click

from mcad.cli.invocation import pasteable
from mcad.kube.errors import ApiError, KubeError, OutcomeUnknown

FAILED, USAGE, NOT_FOUND, TIMED_OUT, INTERRUPTED = 1, 2, 4, 124, 130
"""Exit codes besides 0; ``mcad --help`` lists them."""


NOT_INSTALLED = (
    "AppWrappers are not installed in this cluster; install them with "
    "`mcad crd | kubectl apply --server-side -f -`"
)

NO_QUOTAS = (
    "QuotaSubtrees are not installed in this cluster; install them with "
    "`mcad crd | kubectl apply --server-side -f -`, or set quotaEnabled to false"
)


class CliError(click.ClickException):
    """A failure that is told in one line. ``exit_code`` is that of the process."""

    exit_code = FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line; where stderr cannot be written, the exit code has to do."""
        with suppress(OSError):
            click.echo(f"error: {pasteable(one_line(self.message))}", file=file, err=True)


class NotFoundError(CliError):
    """What was named does not exist."""

    exit_code = NOT_FOUND


def fail_for_missing(names: Sequence[str], message: str) -> None:
    """Tell of each name that nothing has it, and end the command if there is any such name.

    ``message`` has ``{}`` where the name belongs.
    """
    for name in names:
        NotFoundError(message.format(name)).show()
    if names:
        raise click.exceptions.Exit(NOT_FOUND)


def one_line(text: str) -> str:
    """A message without line breaks: servers and parsers like to use several lines."""
    return " ".join(text.split())


def clause(text: str) -> str:
    """A message from outside without its full stop, so that a sentence can go on after it."""
    return text.rstrip(". ")


def warn(text: str) -> None:
    """Say something that does not stop the command."""
    with suppress(OSError):
        click.echo(f"warning: {pasteable(one_line(text))}", err=True)


def explain(error: KubeError) -> CliError:
    """The line for a failure of the transport."""
    if isinstance(error, ApiError):
        return _explain_answer(error)
    if isinstance(error, OutcomeUnknown):
        return CliError(
            f"the API server cannot be reached: {error}; see whether it runs, or choose another "
            "one with --kubeconfig or --context"
        )
    return CliError(str(error))


def _explain_answer(error: ApiError) -> CliError:
    said = clause(error.message or str(error))
    if error.unauthorized:
        return CliError(
            f"the API server does not accept your credentials ({said}); log in again, or choose "
            "others with --kubeconfig or --context"
        )
    if error.forbidden:
        return CliError(f"{said}; ask an administrator for this right")
    if error.throttled or error.transient:
        return CliError(f"the API server is busy or broken ({clause(str(error))}); try again later")
    return CliError(str(error))
