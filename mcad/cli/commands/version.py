"""``mcad version``."""

from __future__ import annotations

import platform

import click

from mcad.api.labels import GROUP, VERSIONS
from mcad.cli.arguments.global_options import form_option
from mcad.cli.pages.output_forms import FormType, echo_form
from mcad.cli.pages.tables import echo
from mcad.version import __version__


@click.command()
@form_option(FormType("json", "yaml"))
def version(form: str | None) -> None:
    """Print the version."""
    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "appWrapperVersions": [f"{GROUP}/{one}" for one in VERSIONS],
    }
    if form:
        echo_form(facts, form)
    else:
        echo([f"mcad {facts['version']} (Python {facts['python']})"])
