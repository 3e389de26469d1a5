"""Names that have changed since the recording, old to new. A recording is compared by them."""

FIELDS: dict[str, str] = {"claim": "reservation"}
"""Of records: events, commands, settings, and what is in them."""

WORDS: dict[str, str] = {
    "RoomClaimed": "RoomReserved",
    "ClaimEnded": "ReservationEnded",
    "Claim": "Reservation",
}
"""Whole texts: reasons, condition types, and other words of an enumeration."""

TEXTS: list[tuple[str, str]] = [
    (r"\bclaims\b", "reservations"),
    (r"\bclaim\b", "reservation"),
    (r"\bClaim\b", "Reservation"),
    (r"\bclaimed\b", "reserved"),
    (
        r"It makes room for (.*), which has a higher priority; it queues again where it stood",
        r"Evicted to make room for \1, which has a higher priority; requeued at its original "
        r"position",
    ),
    (
        r"It makes room for (.*), whose share it borrows; it queues again where it stood",
        r"Evicted so that \1 can reclaim its quota; requeued at its original position",
    ),
    (
        r"That is no fault of the manifest; it is tried again",
        "Not caused by the manifest; retrying",
    ),
    (r"the search budget; it is tried again", "the search budget; retrying"),
    (
        r"has to go, but keeps its finalizer (.*): whoever set it has to remove it, or you by "
        r"hand",
        r"cannot be deleted because of its finalizer \1: its controller has to remove it, or "
        r"remove it by hand",
    ),
    (r"Left besides: ", "Also left: "),
    (r"Not looked at: ", "Not checked: "),
    (r"that another one waits for within", "that another AppWrapper waits for within"),
    (
        r"what waits for it then goes on by itself",
        "the AppWrappers that wait for it then go on by themselves",
    ),
    (r"is kept for it", "is reserved for it"),
    (r"first in line for long: it starts", "first in line for too long; it starts"),
    (
        r": it starts when that is free, by declared limits in time",
        "; it starts when that is free, on time by declared limits",
    ),
    (
        r", where others have to leave for its priority: ",
        "; AppWrappers of lower priority are evicted for it: ",
    ),
    (r", where others borrow what is its share: ", "; its quota is reclaimed from "),
    (r"belongs to nobody we know", "belongs to an unknown owner"),
]
"""Parts of messages, as regular expressions and what replaces them, in this order."""
