"""All stories that the suites play, each with every fault of theirs."""

from tests.faults.evictions import CLAIMED
from tests.faults.scenarios import (
    CASCADES,
    COMPLETED,
    DELETED,
    EDITED,
    IN_TURN,
    KEPT,
    KEPT_AND_CLEARED,
    LATE,
    LINGERS,
    NODE_LOST,
    REQUEUED,
    RESET,
    ROLLED_BACK,
    SUSPENDED,
    TWINS,
    WAVES,
)
from tests.faults.shares import SHARED

SCENARIOS = (
    IN_TURN,
    COMPLETED,
    ROLLED_BACK,
    DELETED,
    EDITED,
    SUSPENDED,
    NODE_LOST,
    WAVES,
    TWINS,
    CASCADES,
    KEPT,
    LINGERS,
    RESET,
    LATE,
    KEPT_AND_CLEARED,
    REQUEUED,
    *SHARED,
    *CLAIMED,
)
