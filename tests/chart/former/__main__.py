"""``python -m tests.chart.former [roll]``."""

import sys

from tests.chart.former.history import record, roll

roll() if sys.argv[1:] == ["roll"] else record()
