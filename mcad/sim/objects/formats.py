"""The formats of strings that a CRD can ask for, as ``k8s.io/kube-openapi`` checks them."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from urllib.parse import urlsplit

_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}([.,]\d+)?([Zz]|[+-]\d{2}:?\d{2})?", re.ASCII
)
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I)
_HOSTNAME = re.compile(
    r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.I | re.ASCII
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_GO_DURATION = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(
    r"(\d+)\s*(ns|nanos?|us|µs|micros?|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?"
    r"|d|days?|w|wks?|weeks?)",
    re.I,
)
_YEAR_TO_MINUTE = 16


def date_time(text: str) -> bool:
    """RFC 3339."""
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text[:_YEAR_TO_MINUTE].upper())
    except ValueError:
        return False
    return text[17:19] <= "60"


def _date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2006-01-02")


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _duration(text: str) -> bool:
    if text == "0":
        return True
    rest = text.removeprefix("-")
    if rest and not _GO_DURATION.sub("", rest):
        return True
    return _DURATION.search(text) is not None


def _uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _of(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": date_time,
    "datetime": date_time,
    "date": _date,
    "byte": _byte,
    "duration": _duration,
    "uri": _uri,
    "ipv4": _of(ipaddress.IPv4Address),
    "ipv6": _of(ipaddress.IPv6Address),
    "cidr": lambda text: "/" in text and _of(ipaddress.ip_interface)(text),
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
}
"""Other formats are accepted without a look at the value, as kube-apiserver does."""
