"""Logging of the dispatcher: one line per record on stderr, of key=value pairs or of JSON.

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


REPEATED_S = 60.0
"""A line that is the same is logged once in this time; the next one says how often it came."""

REMEMBERED_MAX = 1000
"""Different lines that are remembered for that."""


class KeyValue(logging.Formatter):
    """Formats one record as one line of pairs."""

    def format(self, record: logging.LogRecord) -> str:
        """``ts=... level=info logger=controller.runtime msg="synced" appwrappers=3``."""
        return " ".join(f"{key}={_quoted(value)}" for key, value in _fields(record))


class JsonLines(logging.Formatter):
    """Formats one record as one line of JSON, with the same keys; all values are texts."""

    def format(self, record: logging.LogRecord) -> str:
        """``{"ts": "...", "level": "info", "logger": "controller.runtime", "msg": "synced"...}``"""
        return json.dumps(dict(_fields(record)), ensure_ascii=False)


FORMATS: dict[str, type[logging.Formatter]] = {"logfmt": KeyValue, "json": JsonLines}
"""By the word of --log-format."""


def _fields(record: logging.LogRecord) -> list[tuple[str, str]]:
    moment = datetime.fromtimestamp(record.created, UTC)
    what, *pairs = _pieces(record)
    fields = [
        ("ts", f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"),
        ("level", record.levelname.lower()),
        ("logger", record.name.removeprefix("mcad.")),
        ("msg", what),
        *((key, value) for key, _, value in (pair.partition("=") for pair in pairs)),
    ]
    if repeated := getattr(record, "repeated", 0):
        fields.append(("repeated", str(repeated)))
    if record.exc_info:
        fields.append(("trace", " | ".join(_frames(record.exc_info[1]))))
    return fields


class Repeats(logging.Filter):
    """Keeps back a line that was logged less than ``REPEATED_S`` ago."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[str, int, str], tuple[float, int]] = {}  # when, and how often since

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged; it gets the number of those kept back before it."""
        key = record.name, record.levelno, record.getMessage()
        at, kept = self._known.pop(key, (float("-inf"), 0))
        if record.created - at < REPEATED_S:
            self._known[key] = at, kept + 1
            return False
        record.repeated = kept
        self._known[key] = record.created, 0
        if len(self._known) > REMEMBERED_MAX:
            del self._known[next(iter(self._known))]
        return True


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


def start_logging(level: str, form: str = "logfmt") -> None:
    """Log records of this level and above to stderr, in a form of ``FORMATS``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATS[form]())
    handler.addFilter(Repeats())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # These log every request.
    for chatty in ("aiohttp.access", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
