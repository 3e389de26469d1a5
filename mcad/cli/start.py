"""The entrance of the programs: Ctrl-C ends them quietly while their modules are being imported.

Imports nothing but what Python itself has loaded by then.
"""

import os
import sys
from signal import SIGINT, default_int_handler, signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """``mcad`` and ``kubectl mcad``."""
    signal(SIGINT, _end)
    from mcad.cli.main import main as command  # noqa: PLC0415 - this is what takes a while

    signal(SIGINT, default_int_handler)  # the command's own business from here on
    command()


def complete() -> None:
    """``kubectl_complete-mcad``."""
    signal(SIGINT, _end)
    from mcad.cli.plugin import complete as command  # noqa: PLC0415 - see above

    command()


def _end(_number: int, _frame: FrameType | None) -> None:
    """There is nothing to clean up yet, and an exception in an import may be swallowed."""
    if sys.stderr is not None:
        os.write(sys.stderr.fileno(), b"\nerror: interrupted\n")  # ^C stands there
    os._exit(_INTERRUPTED)
