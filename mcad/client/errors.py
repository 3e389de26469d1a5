"""Errors: a sentence that says what is wrong, and what to do; failed requests get theirs here."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from mcad.kube.errors import ApiError, KubeError, OutcomeUnknown

if TYPE_CHECKING:
    from mcad.kube.resource import Resource


def not_installed(kind: Resource) -> str:
    """The message about one of the kinds of the dispatcher that the cluster does not have."""
    return (
        f"{kind.kind}s are not installed in this cluster; install them with "
        "`mcad crd | kubectl apply --server-side -f -`"
    )


class McadError(Exception):
    """Something cannot be done. ``message`` is one sentence that names the field and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UnavailableError(McadError):
    """The dispatcher cannot be asked, and what was asked for is stored nowhere."""


class NotFoundError(McadError):
    """A named object does not exist."""


class TimedOutError(McadError):
    """What was awaited has not happened in time."""


class FailedError(McadError):
    """What was awaited will not happen: the AppWrapper has failed, or was deleted."""


class InvalidError(McadError):
    """Manifests have faults, and nothing was sent. ``faults`` has a sentence for each."""

    def __init__(self, message: str, faults: tuple[str, ...]) -> None:
        super().__init__(message)
        self.faults = faults

    def __str__(self) -> str:
        """The message and the faults, one per line."""
        return "\n".join([f"{self.message}:", *self.faults])


class McadWarning(UserWarning):
    """Something that does not prevent an answer, but that the caller should know."""


def warn(text: str) -> None:
    """Warn the caller with a ``McadWarning``; the command line prints these."""
    warnings.warn(text, McadWarning, stacklevel=2)


def one_line(text: str) -> str:
    """A message in one line: those of servers and parsers may have several."""
    return " ".join(text.split())


def clause(text: str) -> str:
    """A message without its full stop, so that it can be part of a sentence."""
    return text.rstrip(". ")


def explain(error: KubeError) -> McadError:
    """The error for a failed request."""
    if isinstance(error, ApiError):
        return _explain_answer(error)
    if isinstance(error, OutcomeUnknown):
        return McadError(
            f"the API server cannot be reached: {error}; check whether it runs, or choose another "
            "one with --kubeconfig or --context"
        )
    return McadError(str(error))


def explain_list(kind: Resource, error: KubeError, namespace: str | None) -> McadError:
    """The error for a list that failed."""
    if not isinstance(error, ApiError) or not (error.forbidden or error.not_found):
        return explain(error)
    if error.forbidden and "impersonate" in error.message:
        return explain(error)
    if error.not_found:
        return McadError(not_installed(kind))
    if namespace:
        return McadError(
            f"you may not list {kind.plural}.{kind.group} in namespace {namespace}; choose one of "
            "yours with -n, or ask an administrator for the role `view` in this one"
        )
    return McadError(
        f"you may not list {kind.plural}.{kind.group} in the whole cluster; choose a namespace of "
        "yours with -n, or ask an administrator for this right"
    )


def _explain_answer(error: ApiError) -> McadError:
    said = clause(error.message or str(error))
    if error.unauthorized:
        return McadError(
            f"the API server does not accept your credentials ({said}); log in again, or choose "
            "others with --kubeconfig or --context"
        )
    if error.forbidden:
        return McadError(f"{said}; ask an administrator for this right")
    if error.throttled or error.transient:
        return McadError(
            f"the API server is busy or broken ({clause(str(error))}); try again later"
        )
    return McadError(str(error))
