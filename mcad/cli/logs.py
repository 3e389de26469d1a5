"""Logging of the running dispatcher: one line per record, key=value, on stderr.

Messages are written as ``what happened key=value key=value``; the keys become keys of the line and
values with blanks are quoted, so that every line can be taken apart again.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime

LEVELS = ("debug", "info", "warning", "error")

_PAIR = re.compile(r"\s(?=[a-z_]+=)")
_PLAIN = re.compile(r"[^\s\"=]+")


class KeyValue(logging.Formatter):
    """One record as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """``ts=... level=info logger=controller.runtime msg="synced" appwrappers=3``."""
        moment = datetime.fromtimestamp(record.created, UTC)
        what, *pairs = _PAIR.split(record.getMessage())
        fields = [
            ("ts", f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"),
            ("level", record.levelname.lower()),
            ("logger", record.name.removeprefix("mcad.")),
            ("msg", what),
            *((key, value) for key, _, value in (pair.partition("=") for pair in pairs)),
        ]
        if record.exc_info:
            fields.append(("trace", " | ".join(_frames(record.exc_info[1]))))
        return " ".join(f"{key}={_quoted(value)}" for key, value in fields)


def _quoted(value: str) -> str:
    """The value itself, or in quotes as JSON writes them."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def _frames(error: BaseException | None) -> list[str]:
    """Where an exception came from, innermost last; without source lines."""
    stack = traceback.extract_tb(error.__traceback__) if error else []
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in stack]


def start_logging(level: str) -> None:
    """Send every record of this level and above to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValue())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # They would tell of every request.
    for chatty in ("aiohttp.access", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
