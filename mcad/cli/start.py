"""Entry points of the programs: Ctrl-C ends them quietly while modules are imported.

Imports only modules that Python has loaded anyway.
"""

import gc
import os
import sys
from signal import SIGINT, default_int_handler, signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Run ``mcad`` or ``kubectl mcad``."""
    signal(SIGINT, _end)
    gc.disable()  # until the command is imported, too: what is imported stays
    from mcad.cli.main import main as command  # noqa: PLC0415 - the slow import

    signal(SIGINT, default_int_handler)  # from here on the command handles it
    command()


def complete() -> None:
    """Run ``kubectl_complete-mcad``."""
    signal(SIGINT, _end)
    from mcad.cli.plugin import complete as command  # noqa: PLC0415 - see above

    command()


def _end(_number: int, _frame: FrameType | None) -> None:
    """End at once: nothing needs cleanup, and an import may swallow an exception."""
    if sys.stderr is not None:
        os.write(sys.stderr.fileno(), b"\nerror: interrupted\n")  # after ^C
    os._exit(_INTERRUPTED)
