"""The timers of an AppWrapper, by purpose."""

from enum import StrEnum


class Timer(StrEnum):
    """What a timer of an AppWrapper is for; each runs by itself, whatever the others do."""

    STATUS = "status"  # a status write that was refused is repeated
    STEP = "step"  # a create, deletion or look that failed is repeated
    HOLD = "hold"  # a hold is over
    CEILING = "ceiling"  # its priorityslope has brought it as high as it may climb
    RESTATE = "restate"  # a refusal may be rewritten
    PLACEMENT = "placement"  # pods have been without a node for too long (C6)
    RESERVATION = "reservation"  # what was declared and never came is given up (C4)
    ITEMS = "items"  # an item that no watch has reported is read live (again)
    HEALTH = "health"  # what is broken has been borne for long enough
    LIMIT = "limit"  # it has run for too long, or with too few pods
    KEEP = "keep"  # what failed has been kept for long enough
    PAUSE = "pause"  # the pause after a reset is over
    UNSCHEDULED = "unscheduled"  # pods without a node may be reported (again)
    COUNTS = "counts"  # pod counts have been in status for long enough to be written anew
    TTL = "ttl"  # what succeeded has been kept for long enough
    TOMBSTONE = "tombstone"  # the remains of a deleted AppWrapper are looked at again


OF_PHASE = frozenset(Timer) - {Timer.STATUS, Timer.COUNTS}
"""Timers that end with the phase in which they were started."""
