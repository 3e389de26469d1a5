"""Cron schedules in the dialect of ``github.com/robfig/cron/v3``, which CronJobs speak.

Five fields (minute, hour, day of month, month, day of week), names of months and days, ``*``,
``?``, lists, ranges and steps; ``@hourly`` and the like; ``@every 1h30m``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAYS = {name: number for number, name in enumerate(_DAY_NAMES)}
_LIMITS: tuple[tuple[int, int, Mapping[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = re.compile(r"@every (?=.)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_YEARS = 5  # a schedule that has no time for so long has none at all


class UnknownZoneError(ValueError):
    """A time zone that is not in the database."""


@dataclass(frozen=True, slots=True)
class _Field:
    allowed: frozenset[int]
    is_star: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is due."""

    fields: tuple[_Field, ...] = ()
    every_s: int = 0  # instead of the fields
    zone: ZoneInfo | None = None

    def next_us(self, after_us: int) -> int | None:
        """The first instant behind another one, in microseconds since the epoch."""
        after = datetime.fromtimestamp(after_us // 1_000_000, UTC)
        if self.every_s:
            return int(after.timestamp() + self.every_s) * 1_000_000
        minute = timedelta(minutes=1)
        moment, zone = after.replace(second=0) + minute, self.zone or UTC
        last = moment + timedelta(days=365 * _YEARS + 2)
        while moment < last:
            local = moment.astimezone(zone).replace(tzinfo=None)
            later, fits = self._step(local)
            if fits:
                return int(moment.timestamp()) * 1_000_000
            # Where clocks are set back an hour comes twice, and so does what is due in it.
            moment += minute
            if later > local + minute:
                moment = max(later.replace(tzinfo=zone).astimezone(UTC), moment)
        return None

    def _step(self, local: datetime) -> tuple[datetime, bool]:
        """The same moment and True if it fits, else a later one that may."""
        minute, hour, _, month, _ = self.fields
        midnight = local.replace(hour=0, minute=0)
        if local.month not in month.allowed:
            return (midnight.replace(day=1) + timedelta(days=32)).replace(day=1), False
        if not self._is_day(local):
            return midnight + timedelta(days=1), False
        if local.hour not in hour.allowed:
            return local.replace(minute=0) + timedelta(hours=1), False
        if local.minute not in minute.allowed:
            return local + timedelta(minutes=1), False
        return local, True

    def _is_day(self, local: datetime) -> bool:
        """If both days are restricted, either will do."""
        of_month, of_week = self.fields[2], self.fields[4]
        by_month = local.day in of_month.allowed
        by_week = local.isoweekday() % 7 in of_week.allowed
        if of_month.is_star or of_week.is_star:
            return by_month and by_week
        return by_month or by_week


def parse(text: str, zone: str = "") -> Schedule:
    """A schedule; raises ValueError, also for a time zone that is not known."""
    text = text.strip()
    for mark in ("TZ=", "CRON_TZ="):
        if text.startswith(mark):
            zone, _, text = text.removeprefix(mark).partition(" ")
    place = _zone(zone)
    every = _EVERY.fullmatch(text)
    if every is not None:
        hours, minutes, seconds = (int(part or 0) for part in every.groups())
        return Schedule(every_s=max(hours * 3600 + minutes * 60 + seconds, 1), zone=place)
    parts = _DESCRIPTORS.get(text, text).split()
    if len(parts) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(parts)}: {parts}")
    fields = (_field(part, *limit) for part, limit in zip(parts, _LIMITS, strict=True))
    return Schedule(tuple(fields), zone=place)


def _zone(name: str) -> ZoneInfo | None:
    if name in {"", "UTC"}:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZoneError(f"unknown time zone {name}") from error


def _field(text: str, low: int, high: int, names: Mapping[str, int]) -> _Field:
    allowed: set[int] = set()
    is_star = False
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, {}) if slash else 1
        if span in {"*", "?"}:
            first, last = low, high
            is_star = is_star or step == 1
        else:
            first_text, dash, last_text = span.partition("-")
            first = _number(first_text, names)
            last = _number(last_text, names) if dash else (high if slash else first)
        if first < low or last > high or first > last or step < 1:
            raise ValueError(f"{part} is not within {low}-{high}")
        allowed.update(range(first, last + 1, step))
    return _Field(frozenset(allowed), is_star)


def _number(text: str, names: Mapping[str, int]) -> int:
    known = names.get(text.lower())
    if known is not None:
        return known
    if not text.isdecimal():
        raise ValueError(f"failed to parse int from {text}")
    return int(text)
