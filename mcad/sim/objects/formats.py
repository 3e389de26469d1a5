"""The one format of strings that is checked: an instant, as ``k8s.io/kube-openapi`` reads it."""

import re
from datetime import datetime

_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}([.,]\d+)?([Zz]|[+-]\d{2}:?\d{2})?", re.ASCII
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
