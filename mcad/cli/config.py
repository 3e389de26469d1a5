"""The dispatcher's configuration from --config, MCAD_... and --set; faults in one line."""

from __future__ import annotations

import os

from mcad.api.config import Config
from mcad.api.sources import ConfigError, load
from mcad.cli.errors import CliError
from mcad.cli.options import Settings


def load_config(settings: Settings) -> Config:
    """The configuration that the options and the environment give."""
    try:
        return load(settings.config, os.environ, settings.assignments)
    except ConfigError as error:
        raise CliError(str(error)) from error
