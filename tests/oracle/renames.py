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
]
"""Parts of messages, as regular expressions and what replaces them, in this order."""
