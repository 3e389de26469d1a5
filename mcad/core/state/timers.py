"""The timers of an AppWrapper, by purpose."""

from enum import StrEnum


class Timer(StrEnum):
    """What a timer of an AppWrapper is for; timers are independent of each other."""

    STATUS = "status"  # repeat a refused status write
    STEP = "step"  # repeat a failed create, deletion or look
    HOLD = "hold"  # a hold is over
    CEILING = "ceiling"  # its priorityslope has brought it as high as it may climb
    RESTATE = "restate"  # a refusal may be rewritten
    HEALTH = "health"  # a grace or a wait is over
    KEEP = "keep"  # a failed AppWrapper has been kept for long enough
    PAUSE = "pause"  # the pause after a reset is over
    RECORD = "record"  # write what was noted of an attempt, if no other write did
    COUNTS = "counts"  # pod counts in status are old enough to be written anew
    ITEM_TTL = "item-ttl"  # an item that ended has been kept for long enough
    TTL = "ttl"  # a succeeded AppWrapper has been kept for long enough
    TOMBSTONE = "tombstone"  # look at the remains of a deleted AppWrapper again


OF_PHASE = frozenset(Timer) - {Timer.STATUS, Timer.COUNTS}
"""Timers that end with the phase in which they were started."""
