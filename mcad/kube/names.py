"""The forms of names, label keys and label values; each function returns what is wrong with one.

The rules are those of apimachinery's ``pkg/util/validation`` and ``pkg/api/validate/content``; the
texts are theirs too, because users and scripts read them in the answers of kube-apiserver.
"""

import re
from collections.abc import Callable
from functools import lru_cache

Form = Callable[[str], tuple[str, ...]]
"""What is wrong with a text, in the words of kube-apiserver; empty if nothing is."""

SUBDOMAIN_MAX = 253
LABEL_MAX = 63
_CACHED = 4096

_ALNUM = "alphanumeric characters"
_ENDS = "and must start and end with an alphanumeric character"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY_NAME})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_LABEL_RE, _SUBDOMAIN_RE, _LABEL_1035_RE, _KEY_NAME_RE, _VALUE_RE = map(
    re.compile, (_LABEL, _SUBDOMAIN, _LABEL_1035, _KEY_NAME, _VALUE)
)
_CONFIG_KEY_RE = re.compile(_CONFIG_KEY)
_KEY_EXAMPLES = ("MyName", "my.name", "123-abc")
_KEY_TEXT = f"must consist of {_ALNUM}, '-', '_' or '.', {_ENDS}"

EMPTY = "must be non-empty"
_BYTES = (f"{SUBDOMAIN_MAX} characters", f"{SUBDOMAIN_MAX} bytes")


def too_long(limit: int, unit: str = "characters") -> str:
    """A text is longer than it may be. Which unit the real one names depends on the check."""
    return f"must be no more than {limit} {unit}"


def expected(text: str, pattern: str, *examples: str) -> str:
    """A text does not have the form that a regular expression describes."""
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    quoted = " or ".join(f"'{one}', " for one in examples)
    return f"{text} (e.g. {quoted}regex used for validation is '{pattern}')"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@lru_cache(_CACHED)
def dns_label(value: str) -> tuple[str, ...]:
    """RFC 1123 label: the names of containers, namespaces and volumes."""
    wrong = [too_long(LABEL_MAX)] if _size(value) > LABEL_MAX else []
    if not _LABEL_RE.fullmatch(value):
        if _SUBDOMAIN_RE.fullmatch(value):
            wrong.append("must not contain dots")
        else:
            text = f"a lowercase RFC 1123 label must consist of lower case {_ALNUM} or '-', {_ENDS}"
            wrong.append(expected(text, _LABEL, "my-name", "123-abc"))
    return tuple(wrong)


@lru_cache(_CACHED)
def dns_subdomain(value: str) -> tuple[str, ...]:
    """RFC 1123 subdomain: the names of most objects."""
    wrong = [too_long(SUBDOMAIN_MAX)] if _size(value) > SUBDOMAIN_MAX else []
    if not _SUBDOMAIN_RE.fullmatch(value):
        text = (
            f"a lowercase RFC 1123 subdomain must consist of lower case {_ALNUM}, '-' or '.', "
            f"{_ENDS}"
        )
        wrong.append(expected(text, _SUBDOMAIN, "example.com"))
    return tuple(wrong)


@lru_cache(_CACHED)
def dns_1035_label(value: str) -> tuple[str, ...]:
    """RFC 1035 label: it starts with a letter."""
    wrong = [too_long(LABEL_MAX)] if _size(value) > LABEL_MAX else []
    if not _LABEL_1035_RE.fullmatch(value):
        text = (
            f"a DNS-1035 label must consist of lower case {_ALNUM} or '-', start with an "
            "alphabetic character, and end with an alphanumeric character"
        )
        wrong.append(expected(text, _LABEL_1035, "my-name", "abc-123"))
    return tuple(wrong)


@lru_cache(_CACHED)
def label_key(value: str) -> tuple[str, ...]:
    """A qualified name: the key of a label or an annotation, the name of a resource."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        text = expected(f"a valid label key {_KEY_TEXT}", _KEY_NAME, *_KEY_EXAMPLES)
        return (
            f"{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    wrong = []
    if slash:
        faults = dns_subdomain(prefix) if prefix else (EMPTY,)
        wrong = [f"prefix part {fault.replace(*_BYTES)}" for fault in faults]
    if not name:
        wrong.append(f"name part {EMPTY}")
    elif _size(name) > LABEL_MAX:
        wrong.append(f"name part {too_long(LABEL_MAX, 'bytes')}")
    if not _KEY_NAME_RE.fullmatch(name):
        wrong.append("name part " + expected(_KEY_TEXT, _KEY_NAME, *_KEY_EXAMPLES))
    return tuple(wrong)


@lru_cache(_CACHED)
def label_value(value: str) -> tuple[str, ...]:
    """The value of a label; it may be empty."""
    wrong = [too_long(LABEL_MAX, "bytes")] if _size(value) > LABEL_MAX else []
    if not _VALUE_RE.fullmatch(value):
        text = f"a valid label must be an empty string or consist of {_ALNUM}, '-', '_' or '.', "
        wrong.append(expected(text + _ENDS, _VALUE, "MyValue", "my_value", "12345"))
    return tuple(wrong)


def config_key(value: str) -> tuple[str, ...]:
    """A key of a ConfigMap or a Secret, which can be the name of a file."""
    wrong = []
    if len(value) > SUBDOMAIN_MAX:
        wrong.append(too_long(SUBDOMAIN_MAX))
    if not _CONFIG_KEY_RE.fullmatch(value):
        text = f"a valid config key must consist of {_ALNUM}, '-', '_' or '.'"
        wrong.append(expected(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value == ".":
        wrong.append("must not be '.'")
    if value == "..":
        wrong.append("must not be '..'")
    elif value.startswith(".."):
        wrong.append("must not start with '..'")
    return tuple(wrong)


def path_segment(value: str) -> tuple[str, ...]:
    """A name that only has to be one segment of a path."""
    if value in {".", ".."}:
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{one}'" for one in "/%" if one in value)
