"""Reads the configuration from --config, MCAD_... and --set."""

from __future__ import annotations

import os

from mcad.api.config import Config
from mcad.api.sources import ConfigError, load
from mcad.client.errors import McadError
from mcad.client.scope import Settings


def load_config(settings: Settings) -> Config:
    """The configuration that the options and the environment give."""
    try:
        return load(settings.config, os.environ, settings.assignments)
    except ConfigError as error:
        raise McadError(str(error)) from error
