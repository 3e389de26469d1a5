"""The timers of an AppWrapper, by purpose."""

from enum import StrEnum


class Timer(StrEnum):
    """What a timer of an AppWrapper is for; each runs by itself, whatever the others do."""

    STATUS = "status"  # a status write that was refused is repeated
    STEP = "step"  # a create, deletion or look that failed is repeated
    HOLD = "hold"  # a hold is over
    CEILING = "ceiling"  # its priorityslope has brought it as high as it may climb
    RESTATE = "restate"  # a refusal may be rewritten
    HEALTH = "health"  # what is tolerated or waited for has been so for long enough
    KEEP = "keep"  # what failed has been kept for long enough
    PAUSE = "pause"  # the pause after a reset is over
    RECORD = "record"  # what was noted of an attempt is written, if no other write did it
    COUNTS = "counts"  # pod counts have been in status for long enough to be written anew
    ITEM_TTL = "item-ttl"  # an item that ended has been kept for long enough
    TTL = "ttl"  # what succeeded has been kept for long enough
    TOMBSTONE = "tombstone"  # the remains of a deleted AppWrapper are looked at again


OF_PHASE = frozenset(Timer) - {Timer.STATUS, Timer.COUNTS}
"""Timers that end with the phase in which they were started."""
