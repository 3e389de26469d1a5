"""Logging of the dispatcher: one line of key=value pairs per record, on stderr.

Messages are written as ``what happened key=%s key=%s``. The keys of the template become keys of the
line, and values with blanks are quoted, so that every line can be parsed.
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
_PLACEHOLDER = re.compile(r"%[-#0 +\d.]*[a-z]")
_PLAIN = re.compile(r"[^\s\"=]+")


class KeyValue(logging.Formatter):
    """Formats one record as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """``ts=... level=info logger=controller.runtime msg="synced" appwrappers=3``."""
        moment = datetime.fromtimestamp(record.created, UTC)
        what, *pairs = _pieces(record)
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


def _pieces(record: logging.LogRecord) -> list[str]:
    """The message and the pairs; only the template is split, never the values."""
    if not isinstance(record.msg, str) or not isinstance(record.args, tuple):
        return [record.getMessage()]
    pieces, args = [], list(record.args)
    for piece in _PAIR.split(record.msg):
        count = len(_PLACEHOLDER.findall(piece.replace("%%", "")))
        pieces.append(piece % tuple(args[:count]) if args[:count] else piece)
        del args[:count]
    return pieces


def _quoted(value: str) -> str:
    """The value, as a JSON string if necessary."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def _frames(error: BaseException | None) -> list[str]:
    """The stack of an exception, innermost frame last, without source lines."""
    stack = traceback.extract_tb(error.__traceback__) if error else []
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in stack]


def start_logging(level: str) -> None:
    """Log records of this level and above to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValue())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # These log every request.
    for chatty in ("aiohttp.access", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
