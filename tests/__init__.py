"""The tests. In each of them an error of the dispatcher fails the test instead of holding one
AppWrapper (mcad/core/internal_errors.py), which a test might not notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from mcad.core import internal_errors
from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.internal_error import InternalError

_hold, _hold_for = internal_errors.hold, internal_errors.hold_for


def _raise(cluster: Cluster, error: Exception, *_: Any) -> NoReturn:
    raise error


def _raise_for(cluster: Cluster, entry: Entry, error: InternalError) -> NoReturn:
    raise AssertionError(f"{entry.title}: {error.message}")


def _install(hold: Any, hold_for: Any) -> None:
    internal_errors.hold, internal_errors.hold_for = hold, hold_for


@contextmanager
def errors_held() -> Iterator[None]:
    """Errors hold one AppWrapper, as in production."""
    _install(_hold, _hold_for)
    try:
        yield
    finally:
        _install(_raise, _raise_for)


_install(_raise, _raise_for)
