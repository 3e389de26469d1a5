"""An AppWrapper as YAML, for people: without bookkeeping of the API server, and without secrets."""

from __future__ import annotations

import asyncio
from typing import Any

import yaml

from mcad.api.wire import as_map
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.errors import McadError
from mcad.kube.client import Client

Json = dict[str, Any]

SHOWN_MAX = 256 * 1024  # characters
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HIDDEN = "(hidden)"

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


async def read_manifest(client: Client, namespace: str, name: str) -> tuple[str, bool]:
    """The YAML, and whether its end is left out; raises ``McadError`` if there is none."""
    obj = await read_appwrapper(client, namespace, name)
    if obj is None:
        raise McadError(f"There is no AppWrapper {namespace}/{name}.")
    text = await asyncio.to_thread(to_yaml, obj)  # a second for the largest
    return text[:SHOWN_MAX], len(text) > SHOWN_MAX


def to_yaml(obj: Json) -> str:
    """The YAML of an object."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if annotations := as_map(metadata.get("annotations")):
        # It repeats the whole spec, secrets included.
        kept = {key: text for key, text in annotations.items() if key != LAST_APPLIED}
        metadata["annotations"] = kept
    shown = _without_secrets(obj | {"metadata": metadata})
    text: str = yaml.dump(shown, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    return text


def _without_secrets(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_secrets(one) for one in value]
    if not isinstance(value, dict):
        return value
    hides = ("data", "stringData") if value.get("kind") == "Secret" else ()
    return {
        key: dict.fromkeys(as_map(inner), HIDDEN) if key in hides else _without_secrets(inner)
        for key, inner in value.items()
    }
