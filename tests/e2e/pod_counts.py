"""``python -m tests.e2e.pod_counts run``: the dispatcher with another ``POD_COUNTS_INTERVAL``.

The variable ``POD_COUNTS_S`` gives it in seconds.
"""

from __future__ import annotations

import os

from mcad.core.state import bounds
from mcad.core.state.units import SECOND


def main() -> None:
    """Set the bound before the modules that use it are imported, and run the program."""
    bounds.POD_COUNTS_INTERVAL = int(os.environ["POD_COUNTS_S"]) * SECOND
    from mcad.cli.start import main as program

    program()


if __name__ == "__main__":
    main()
