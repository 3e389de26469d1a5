"""Parses names of objects on the command line: NAME, TYPE/NAME, or TYPE NAME... like kubectl.

Names of AppWrappers may have their namespace, NS/NAME, as ``-A -o name`` prints them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import click
from msgspec import Struct

from mcad.api.labels import GROUP


class ObjectName(Struct, frozen=True):
    """A name as it was given; ``namespace`` is None if it was given without."""

    name: str
    namespace: str | None = None


_PLAIN = ("aw", "appwrapper", "appwrappers")
_VERSIONED = tuple(f"{word}.{version}" for word in _PLAIN for version in ("v1beta1", "v1beta2"))
APPWRAPPER_TYPES = frozenset({*_PLAIN, *(f"{word}.{GROUP}" for word in (*_PLAIN, *_VERSIONED))})
NODE_TYPES = frozenset({"no", "node", "nodes"})


def node_names(arguments: Sequence[str]) -> tuple[str, ...]:
    """The names of nodes in these arguments without duplicates: NAME or node/NAME; ``UsageError``
    for anything else."""
    return tuple(dict.fromkeys(map(_node_name, _without_type(arguments, NODE_TYPES))))


def qualified_names(arguments: Sequence[str]) -> tuple[ObjectName, ...]:
    """The names of AppWrappers in these arguments without duplicates: NAME, aw/NAME, NS/NAME or
    aw/NS/NAME; ``UsageError`` for anything else."""
    return tuple(dict.fromkeys(map(qualified_name, _without_type(arguments, APPWRAPPER_TYPES))))


def in_full(names: Iterable[ObjectName], own: str) -> list[ObjectName]:
    """The names with their namespaces, ``own`` for those without, and without duplicates."""
    return list(dict.fromkeys(ObjectName(one.name, one.namespace or own) for one in names))


def qualified(namespace: str, name: str) -> str:
    """NS/NAME, as ``qualified_names`` reads it; aw/NS/NAME for a namespace called ``aw``."""
    return f"{'aw/' if namespace in APPWRAPPER_TYPES else ''}{namespace}/{name}"


def qualified_name(argument: str) -> ObjectName:
    """One of these; ``UsageError`` for anything else."""
    parts = argument.split("/")
    if len(parts) > 1 and parts[0].lower() in APPWRAPPER_TYPES:
        parts = parts[1:]
    if not all(parts) or len(parts) > 2:
        raise click.UsageError(
            f"{argument!r} is not an AppWrapper: write NAME, NAMESPACE/NAME or aw/NAME"
        )
    return ObjectName(parts[-1], parts[0] if len(parts) == 2 else None)


def _without_type(arguments: Sequence[str], types: Container[str]) -> Sequence[str]:
    """The arguments after the name of a type, as in `get aw x y`."""
    return arguments[1:] if arguments and arguments[0].lower() in types else arguments


def _node_name(argument: str) -> str:
    given, slash, name = argument.rpartition("/")
    if (not slash or given.lower() in NODE_TYPES) and name:
        return name
    raise click.UsageError(f"{argument!r} is not a node: write NAME or node/NAME")
