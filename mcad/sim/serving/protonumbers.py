"""The field numbers of Kubernetes' protobuf messages, by the name of the OpenAPI component.

``protonumbers.txt`` is written by ``make golden`` out of the Go types; its head tells its form.
Numbers are never used twice, so older clients are understood as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Field:
    """One numbered field: its JSON name, or the component that it embeds."""

    name: str
    is_pointer: bool = False
    is_embedded: bool = False


@cache
def numbers(component: str) -> Mapping[int, Field]:
    """The fields of ``core.v1.PodSpec`` by number; none if the message is not known."""
    return dict(_parse(_table().get(component, "")))


@cache
def _table() -> Mapping[str, str]:
    lines = files(__package__).joinpath("protonumbers.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if not line.startswith("#"))


def _parse(text: str) -> Iterator[tuple[int, Field]]:
    number = 0
    for word in text.split():
        jump, found, name = word.rpartition("=")
        number = int(jump) if found else number + 1
        yield number, Field(name.strip("+*"), name.endswith("*"), name.startswith("+"))
