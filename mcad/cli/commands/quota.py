"""``mcad quota``: commands about quota trees; ``show`` is the default."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

_COMMANDS = {
    "show": ("mcad.cli.commands.quota_show", "show"),
    "check": ("mcad.cli.commands.quota_check", "check_files"),
}
_HELP = ("-h", "--help")


class _Quota(click.Group):
    """A group that imports commands on use; the default command is ``show``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command."""
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``mcad quota red`` is ``mcad quota show red``."""
        if not args or (args[0] not in _COMMANDS and args[0] not in _HELP):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Quota)
def quota(**_: Any) -> None:
    """Show quota trees: the quota of each team, used, borrowed and lent.

    `mcad quota` alone is `mcad quota show`; `mcad quota show --help` has its options.
    """
