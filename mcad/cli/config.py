"""The dispatcher's configuration from --config, MCAD_... and --set; faults in one line."""

from __future__ import annotations

import os

from mcad.api.config import Config
from mcad.api.sources import ConfigError, load
from mcad.api.wire import as_map
from mcad.cli.errors import CliError
from mcad.cli.options import Settings
from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from mcad.kube.kinds import QUOTA_SUBTREES


async def as_dispatched(client: Client, config: Config) -> Config:
    """The configuration with quota on, if the caller's says nothing about it and a dispatcher has
    written what becomes of a QuotaSubtree: figures without the shares would be wrong."""
    if "quota_enabled" in config.model_fields_set:
        return config
    try:
        found, _ = await client.list_all(QUOTA_SUBTREES)
    except ApiError:  # they are not installed, or nobody shows them to the caller
        return config
    is_on = any(as_map(obj.get("status")).get("conditions") for obj in found)
    return config.model_copy(update={"quota_enabled": True}) if is_on else config


def load_config(settings: Settings) -> Config:
    """The configuration that the options and the environment give."""
    try:
        return load(settings.config, os.environ, settings.assignments)
    except ConfigError as error:
        raise CliError(str(error)) from error
