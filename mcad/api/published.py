"""The settings of the leading dispatcher, as an annotation of its Lease.

A process that does not lead uses them, so that its answers follow the same rules.
"""

import json

from msgspec import Struct
from pydantic import ValidationError

from mcad.api.config import Config
from mcad.api.labels import GROUP
from mcad.api.removed_settings import without_removed
from mcad.api.sources import NAMES
from mcad.api.wire import as_map

ANNOTATION = f"{GROUP}/settings"

_PRIVATE = frozenset({"leader_election", "impersonate"})
"""Settings that no decision or answer depends on; they are not published."""


class Published(Struct, frozen=True):
    """The settings to use, and the names of settings that this version does not know, or has no
    more and with another value."""

    config: Config
    unknown: tuple[str, ...] = ()


def publish(config: Config, identity: str) -> str:
    """The text to publish, with defaults, as another version may have others. ``identity`` is the
    process as the Lease names it."""
    settings = config.model_dump(mode="json", by_alias=True, exclude=set(_PRIVATE))
    return json.dumps({"holder": identity, "settings": settings})


def is_of(text: str, holder: str) -> bool:
    """Whether the holder of the Lease published this, or the last holder if there is none now. An
    older version leaves the annotation of another process in place."""
    try:
        return as_map(json.loads(text)).get("holder") == holder or not holder
    except ValueError:
        return True  # ``read_published`` rejects it


def read_published(text: str, own: Config) -> Published | None:
    """The published settings, overridden by those given in ``own``; None if this version cannot
    read them."""
    try:
        published, changed = without_removed(as_map(as_map(json.loads(text)).get("settings")))
        given = own.model_dump(mode="json", by_alias=True, include=own.model_fields_set)
        known = {name: value for name, value in published.items() if name in NAMES}
        config = Config.model_validate(known | given)
    except (ValueError, ValidationError):
        return None
    unknown = tuple(sorted({*published.keys() - known.keys(), *changed}))
    return Published(config, unknown) if known else None
