"""Reads the configuration from --config, MCAD_... and --set, and from the running dispatcher."""

from __future__ import annotations

import os

from mcad.api.config import Config
from mcad.api.published import ANNOTATION, is_of, read_published
from mcad.api.sources import ConfigError, load
from mcad.api.wire import as_map, as_text
from mcad.client.errors import McadError, warn
from mcad.client.scope import Settings
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import LEASES, QUOTA_SUBTREES


async def as_dispatched(client: Client, config: Config) -> Config:
    """The settings that the leader publishes in its Lease, with those that the caller gives.

    Without published settings, quota is on if a dispatcher has written to a QuotaSubtree."""
    text = await _published(client, config)
    found = read_published(text, config)
    if found is None:
        if text:
            warn(
                f"the settings of the dispatcher, {ANNOTATION} of its Lease, are not understood: "
                "use the version of mcad that runs there, or ask it with --server URL"
            )
        return await _with_quota(client, config)
    if found.unknown:
        warn(
            f"the dispatcher has settings that this version of mcad does not know: "
            f"{', '.join(found.unknown)}; figures may differ from its own"
        )
    return found.config


async def _published(client: Client, config: Config) -> str:
    lease = config.leader_election
    try:
        found = await client.get(LEASES, lease.namespace, lease.name)
    except KubeError:
        return ""
    text = as_text(as_map(as_map(found.get("metadata")).get("annotations")).get(ANNOTATION))
    holder = as_text(as_map(found.get("spec")).get("holderIdentity"))
    return text if text and is_of(text, holder) else ""


async def _with_quota(client: Client, config: Config) -> Config:
    """The configuration with quota on if a dispatcher has written the status of a QuotaSubtree.

    An explicit setting of the caller wins. Figures without quota would be wrong."""
    if "quota_enabled" in config.model_fields_set:
        return config
    try:
        found, _ = await client.list_all(QUOTA_SUBTREES)
    except ApiError:  # not installed, or the caller may not list them
        return config
    is_on = any(as_map(obj.get("status")).get("conditions") for obj in found)
    return config.model_copy(update={"quota_enabled": True}) if is_on else config


def load_config(settings: Settings) -> Config:
    """The configuration that the options and the environment give."""
    try:
        return load(settings.config, os.environ, settings.assignments)
    except ConfigError as error:
        raise McadError(str(error)) from error
