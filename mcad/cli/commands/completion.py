"""``mcad completion``: prints the script for completion of commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mcad.client.errors import McadError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: source <(mcad completion bash)
    zsh:  source <(mcad completion zsh)
    fish: mcad completion fish | source
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise McadError(f"no completion for {shell}")
    program = ctx.find_root()
    click.echo(kind(program.command, {}, "mcad", "_MCAD_COMPLETE").source())
