"""Parses names of objects on the command line: NAME, TYPE/NAME, or TYPE NAME... like kubectl."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec import Struct

from mcad.api.labels import GROUP


class Kind(Struct, frozen=True):
    """The names of one type. ``example`` shows how to name one object."""

    title: str
    words: frozenset[str]
    example: str


_PLAIN = ("aw", "appwrapper", "appwrappers")
_VERSIONED = tuple(f"{word}.{version}" for word in _PLAIN for version in ("v1beta1", "v1beta2"))

APPWRAPPER = Kind(
    "an AppWrapper",
    frozenset({*_PLAIN, *(f"{word}.{GROUP}" for word in (*_PLAIN, *_VERSIONED))}),
    "aw/NAME",
)
NODE = Kind("a node", frozenset({"no", "node", "nodes"}), "node/NAME")


def names_of(kind: Kind, arguments: Sequence[str]) -> tuple[str, ...]:
    """The names in these arguments without duplicates; ``UsageError`` for another type."""
    rest = list(arguments)
    if rest and rest[0].lower() in kind.words:  # the name of a type, as in `get aw x y`
        rest = rest[1:]
    return tuple(dict.fromkeys(_name(kind, one) for one in rest))


def _name(kind: Kind, argument: str) -> str:
    given, slash, name = argument.rpartition("/")
    if (not slash or given.lower() in kind.words) and name:
        return name
    raise click.UsageError(
        f"{argument!r} is not {kind.title}: write NAME or {kind.example}, and its namespace with -n"
        if kind is APPWRAPPER
        else f"{argument!r} is not {kind.title}: write NAME or {kind.example}"
    )
