"""An error of the dispatcher itself about one AppWrapper, as users see it.

Neither the text of an exception nor its values are kept: both may quote a manifest. The controller
logs them, under the same id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from mcad.core.state.records import Struct
from mcad.core.state.violations import InvariantViolated
from mcad.version import __version__

if TYPE_CHECKING:
    from types import TracebackType

_PACKAGE = "/mcad/"


class InternalError(Struct, frozen=True):
    """``id`` is the same for all errors of one kind in one function; ``message`` names both."""

    id: str
    message: str


_MARK = f"mcad {__version__}"
_REPORT = " Please report "
_TEXT = (
    "The dispatcher had an error of its own ({what}) and leaves this AppWrapper alone: its objects "
    "stay as they are, and its room stays booked. To try again, edit its spec, use mcad requeue, "
    "or run another version." + _REPORT + "{id} of {mark}"
)


def on_record(message: str) -> InternalError | None:
    """The error of a recorded message; None if it is not from this very version."""
    _, _, report = message.rpartition(_REPORT)
    name, _, version = report.partition(" of ")
    return InternalError(name, message) if version == _MARK else None


def describe(error: BaseException) -> InternalError:
    """The error in words, without anything that a user wrote."""
    kind = type(error).__name__
    if isinstance(error, InvariantViolated):
        kind = f"{kind} {error.name}"
    what = f"{kind} in {_place(error.__traceback__)}"
    name = f"E{crc32(what.encode()):08x}"
    return InternalError(name, _TEXT.format(what=what, id=name, mark=_MARK))


def _place(trace: TracebackType | None) -> str:
    """The innermost function of this package in progress: file and name."""
    found = "the controller"
    while trace is not None:
        code = trace.tb_frame.f_code
        _, is_ours, file = code.co_filename.rpartition(_PACKAGE)
        if is_ours:
            found = f"{file}, {code.co_name}"
        trace = trace.tb_next
    return found
