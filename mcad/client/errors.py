"""Errors of the CLI: one line that says what is wrong and what to do, and an exit code.

Commands raise ``CliError`` with the message; failed requests get their message here.
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
    """An error that is printed in one line; the process ends with ``exit_code``."""

    exit_code = FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line; a closed stderr is ignored, because the exit code remains."""
        with suppress(OSError):
            click.echo(f"error: {pasteable(one_line(self.message))}", file=file, err=True)


class NotFoundError(CliError):
    """A named object does not exist."""

    exit_code = NOT_FOUND


def fail_for_missing(names: Sequence[str], message: str) -> None:
    """Print an error for each name, and end the command if there is any.

    ``message`` contains ``{}`` for the name.
    """
    for name in names:
        NotFoundError(message.format(name)).show()
    if names:
        raise click.exceptions.Exit(NOT_FOUND)


def one_line(text: str) -> str:
    """A message in one line: those of servers and parsers may have several."""
    return " ".join(text.split())


def clause(text: str) -> str:
    """A message without its full stop, so that it can be part of a sentence."""
    return text.rstrip(". ")


def warn(text: str) -> None:
    """Print a warning."""
    with suppress(OSError):
        click.echo(f"warning: {pasteable(one_line(text))}", err=True)


def explain(error: KubeError) -> CliError:
    """The error for a failed request."""
    if isinstance(error, ApiError):
        return _explain_answer(error)
    if isinstance(error, OutcomeUnknown):
        return CliError(
            f"the API server cannot be reached: {error}; check whether it runs, or choose another "
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
