"""``mcad version``."""

from __future__ import annotations

import platform

import click

import mcad
from mcad.api.crd import VERSIONS
from mcad.api.labels import GROUP
from mcad.cli.options import Output, output_options
from mcad.cli.tables import echo, echo_structured


@click.command()
@output_options("json", "yaml")
def version(output: Output) -> None:
    """Print the version."""
    facts = {
        "version": mcad.__version__,
        "python": platform.python_version(),
        "appWrapperVersions": [f"{GROUP}/{one}" for one in VERSIONS],
    }
    if output.form:
        echo_structured(facts, output.form)
    else:
        echo([f"mcad {facts['version']} (Python {facts['python']})"])
