"""Entry points of the programs: a signal ends them quietly while modules are imported.

Imports only modules that Python has loaded anyway.
"""

import gc
import os
import sys
from signal import SIGINT, SIGTERM, default_int_handler, getsignal, signal
from types import FrameType

SIGNALLED = 128  # the shells add it to the number of the signal that ended a command


def main() -> None:
    """Run ``mcad`` or ``kubectl mcad``."""
    _end_at_signals()
    gc.disable()  # until the command is imported, too: what is imported stays
    from mcad.cli.main import main as command  # noqa: PLC0415 - the slow import

    try:
        command()
    finally:
        gc.freeze()  # at its end Python looks for garbage in everything else, for nothing


def complete() -> None:
    """Run ``kubectl_complete-mcad``."""
    _end_at_signals()
    from mcad.cli.plugin import complete as command  # noqa: PLC0415 - see above

    command()


def imported() -> None:
    """From here on the command handles Ctrl-C. SIGTERM goes on to end the process unless the
    command replaces it: without a handler Linux drops it for the first process of a container."""
    if getsignal(SIGINT) is _end:
        signal(SIGINT, default_int_handler)


def _end_at_signals() -> None:
    signal(SIGINT, _end)
    signal(SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    """End at once: nothing needs cleanup, and an import may swallow an exception."""
    if number == SIGINT and sys.stderr is not None:
        os.write(sys.stderr.fileno(), b"\nerror: interrupted\n")  # after ^C
    os._exit(SIGNALLED + number)
