"""``mcad version``."""

from __future__ import annotations

import platform

import click

from mcad.api.labels import GROUP, VERSIONS
from mcad.cli.pages.tables import echo, echo_structured
from mcad.version import __version__


@click.command()
@click.option(
    "-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="The form of the output."
)
def version(form: str | None) -> None:
    """Print the version."""
    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "appWrapperVersions": [f"{GROUP}/{one}" for one in VERSIONS],
    }
    if form:
        echo_structured(facts, form)
    else:
        echo([f"mcad {facts['version']} (Python {facts['python']})"])
