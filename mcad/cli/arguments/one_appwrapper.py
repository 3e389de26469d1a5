"""Reads one AppWrapper by the name that was given, for commands about one."""

from __future__ import annotations

from typing import Any

import click

from mcad.cli.arguments.completion_candidates import complete_appwrappers
from mcad.cli.arguments.names import ObjectName, qualified_name
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.errors import NotFoundError
from mcad.client.figures.row import in_namespace
from mcad.client.session import Session

Json = dict[str, Any]

one_option = click.argument("name", metavar="NAME", shell_complete=complete_appwrappers)
"""For commands about one AppWrapper."""


async def read_one(session: Session, argument: str, namespace: str | None) -> Json:
    """The AppWrapper of NAME, aw/NAME or NS/NAME; raises ``NotFoundError``."""
    (one,) = check_namespace((qualified_name(argument),), namespace)
    where = one.namespace or namespace or session.namespace
    obj = await read_appwrapper(session.client, where, one.name)
    if obj is None:
        raise absent(ObjectName(one.name, where))
    return obj


def check_namespace(names: tuple[ObjectName, ...], namespace: str | None) -> tuple[ObjectName, ...]:
    """The names; ``UsageError`` if one says another namespace than -n."""
    for one in names:
        if namespace and one.namespace not in (None, namespace):
            given = f"{one.namespace}/{one.name}"
            raise click.UsageError(f"{given} is not in namespace {namespace}: omit one")
    return names


def absent(one: ObjectName) -> NotFoundError:
    """The error for a name that no AppWrapper has."""
    where = in_namespace(one.namespace)
    return NotFoundError(f'no AppWrapper "{one.name}"{where}; see `mcad get -A`')
