"""Names that have changed since the recording, old to new. A recording is compared by them."""

FIELDS: dict[str, str] = {}
"""Of records: events, commands, settings, and what is in them."""

WORDS: dict[str, str] = {}
"""Whole texts: reasons, condition types, and other words of an enumeration."""

TEXTS: list[tuple[str, str]] = []
"""Parts of messages, as regular expressions and what replaces them, in this order."""
