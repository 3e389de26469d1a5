"""Finds other controllers of AppWrappers in the cluster, by their webhooks and recent writes.

Both prove that a controller is active, whatever its name and namespace. Leftovers of a removed
controller (objects, conditions, finalizers) prove nothing. See ADR 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import yaml
from msgspec import Struct

from mcad.api.labels import GROUP
from mcad.api.wire import as_list, as_map, as_text, dig, parse_instant
from mcad.core.state.units import SECOND, Duration, Instant

Json = dict[str, Any]

RECENT: Duration = 60 * SECOND
"""A write that is older says nothing about the controllers that run now."""

_DASHED = GROUP.replace(".", "-")
_PATHS = (f"/mutate-{_DASHED}-", f"/validate-{_DASHED}-")
"""How kubebuilder names the endpoint of a webhook; Kueue's and upstream's are equal in that."""

_ANYTHING = frozenset({"kueue", "mcad-controller"})
"""Field managers that write nothing of an AppWrapper unless they manage it: Kueue names itself so,
MCAD is named after its program."""

_STATUS = frozenset({"manager", "codeflare-operator"})
"""Names that other programs have as well: only a writer of the status manages an AppWrapper."""


Write = tuple[Instant, str, str]
"""When, the field manager, and ``namespace/name`` of the AppWrapper."""

NO_WRITE: Write = (0, "", "")


class Webhook(Struct, frozen=True):
    """A webhook for AppWrappers, and the service that answers it."""

    configuration: str
    namespace: str
    service: str

    @property
    def settings(self) -> str:
        """The ConfigMap of Kueue beside that service, by the names in its manifests and chart."""
        return f"{self.service.removesuffix('webhook-service')}manager-config"

    def __str__(self) -> str:
        return f"{self.configuration} (service {self.namespace}/{self.service})"


def webhooks(configurations: Iterable[Json]) -> Iterator[Webhook]:
    """The webhooks for AppWrappers in admission configurations."""
    for one in configurations:
        for hook in as_list(one.get("webhooks")):
            service = as_map(dig(hook, "clientConfig", "service"))
            if as_text(service.get("path")).startswith(_PATHS):
                yield Webhook(
                    as_text(dig(one, "metadata", "name")),
                    as_text(service.get("namespace")),
                    as_text(service.get("name")),
                )


def integrates(configmap: Json) -> bool:
    """Whether Kueue's configuration enables AppWrappers; True if it cannot be parsed."""
    text = as_text(dig(configmap, "data", "controller_manager_config.yaml"))
    try:
        frameworks = dig(yaml.safe_load(text), "integrations", "frameworks")
    except yaml.YAMLError:
        return True
    return not isinstance(frameworks, list) or f"{GROUP}/appwrapper" in frameworks


def latest_write(writes: Iterable[Write], now: Instant) -> str:
    """The latest recent write as text, "" if there is none."""
    at, manager, title = max(writes, default=NO_WRITE)
    if now - at > RECENT:
        return ""
    return f"{manager!r} has written to AppWrapper {title} {max(0, now - at) // SECOND} s ago"


def last_write(appwrapper: Json) -> Write:
    """The last write of another controller to an AppWrapper, or ``NO_WRITE``."""
    return max(_writes(appwrapper), default=NO_WRITE)


def _writes(obj: Json) -> Iterator[Write]:
    metadata = as_map(obj.get("metadata"))
    for field in map(as_map, as_list(metadata.get("managedFields"))):
        manager = as_text(field.get("manager"))
        if manager in _ANYTHING or (manager in _STATUS and field.get("subresource") == "status"):
            title = f"{metadata.get('namespace')}/{metadata.get('name')}"
            yield parse_instant(field.get("time")), manager, title
