"""Parses names of objects on the command line: NAME, TYPE/NAME, or TYPE NAME... like kubectl.

Names of AppWrappers may have their namespace, NS/NAME, as ``-A -o name`` prints them.
"""

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


PREFIX = f"appwrapper.{GROUP}/"
"""Before the name of an AppWrapper, as kubectl prints it."""


class ObjectName(Struct, frozen=True):
    """A name as it was given; ``namespace`` is None if it was given without."""

    name: str
    namespace: str | None = None


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


def qualified_names(arguments: Sequence[str]) -> tuple[ObjectName, ...]:
    """The names of AppWrappers in these arguments without duplicates: NAME, aw/NAME, NS/NAME or
    aw/NS/NAME; ``UsageError`` for anything else."""
    rest = list(arguments)
    if rest and rest[0].lower() in APPWRAPPER.words:
        rest = rest[1:]
    return tuple(dict.fromkeys(map(qualified_name, rest)))


def qualified(namespace: str, name: str) -> str:
    """NS/NAME, as ``qualified_names`` reads it; aw/NS/NAME for a namespace called ``aw``."""
    prefix = f"{APPWRAPPER.example.partition('/')[0]}/" if namespace in APPWRAPPER.words else ""
    return f"{prefix}{namespace}/{name}"


def qualified_name(argument: str) -> ObjectName:
    """One of these; ``UsageError`` for anything else."""
    parts = argument.split("/")
    if len(parts) > 1 and parts[0].lower() in APPWRAPPER.words:
        parts = parts[1:]
    if not all(parts) or len(parts) > 2:
        raise click.UsageError(
            f"{argument!r} is not an AppWrapper: write NAME, NAMESPACE/NAME or {APPWRAPPER.example}"
        )
    return ObjectName(parts[-1], parts[0] if len(parts) == 2 else None)


def _name(kind: Kind, argument: str) -> str:
    given, slash, name = argument.rpartition("/")
    if (not slash or given.lower() in kind.words) and name:
        return name
    raise click.UsageError(
        f"{argument!r} is not {kind.title}: write NAME or {kind.example}, and its namespace with -n"
        if kind is APPWRAPPER
        else f"{argument!r} is not {kind.title}: write NAME or {kind.example}"
    )
