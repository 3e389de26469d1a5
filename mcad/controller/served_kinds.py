"""Which kinds the cluster serves and which of them may be wrapped: discovery and configuration.

Parsing reads it without waiting. It is refreshed in the background when an AppWrapper names a kind
that is not served yet, at most as often as discovery allows.
"""

from collections.abc import Iterable

from mcad.api import catalog
from mcad.api.config import Config, catalog_of
from mcad.api.crd import NAME, QUOTA_NAME
from mcad.api.owner import Owner
from mcad.kube.discovery import Discovery
from mcad.kube.errors import KubeError
from mcad.kube.resource import Resource


class Kinds:
    """The present catalogue; ``refresh`` replaces ``catalog`` as a whole.

    ``trouble`` says why the latest ``refresh`` failed, or is "" if it succeeded.
    """

    def __init__(self, discovery: Discovery, config: Config) -> None:
        self._discovery = discovery
        self._allowed = wrapped_pairs(config)
        self._own = {NAME, QUOTA_NAME} if config.quota_enabled else {NAME}
        self._asked_by = config.scale_up.kinds
        self._served: dict[tuple[str, str], Resource] = {}
        self._config = config
        self.catalog = catalog_of(config, ())
        self.trouble = "discovery has not answered yet"

    async def refresh(self) -> bool:
        """Ask discovery again. Return whether anything has changed. Raises KubeError."""
        self._discovery.invalidate()
        try:
            served = await self._discovery.all_resources()
        except KubeError as error:
            patience_s = self._discovery.patience_s
            self.trouble = f"{error}; retrying with {patience_s:g} s for each answer"
            raise
        self.trouble = ""
        before = self.catalog, self._served
        self.catalog = catalog_of(self._config, map(catalog_entry, served))
        # The first version listed is the one that the server prefers.
        self._served = {}
        for resource in served:
            self._served.setdefault((resource.group, resource.plural), resource)
        return before != (self.catalog, self._served)

    def resource_of(self, owner: Owner) -> Resource | None:
        """Where objects of an owner's kind are served, or None if they are not."""
        kind = self.catalog.find(owner.group, owner.version, owner.kind)
        if kind is None:
            return None
        return Resource(kind.group, kind.version, kind.resource, kind.kind, kind.namespaced)

    def concerns(self, crd: str) -> bool:
        """Whether a CRD is one of ours, of a kind that may be wrapped, or of the autoscaler."""
        plural, _, group = crd.partition(".")
        return (group, plural) in (*self._allowed, *self._asked_by) or crd in self._own

    def serves(self, pair: tuple[str, str]) -> bool:
        """Whether (group, plural) is served in any version."""
        return pair in self._served

    def served(self, pair: tuple[str, str]) -> Resource | None:
        """The kind (group, plural) in the version that discovery prefers, None if it is absent."""
        return self._served.get(pair)

    def missing(self) -> set[str]:
        """The CRD names of kinds that may be wrapped, or by which an autoscaler may be asked, and
        that are not served."""
        wanted = (*self._allowed, *self._asked_by)
        return {f"{pair[1]}.{pair[0]}" for pair in wanted if pair not in self._served}

    def wrapped(self) -> Iterable[Resource]:
        """The served kinds that may be wrapped, without pods, in the order of the configuration."""
        pairs = [pair for pair in self._allowed if pair != ("", "pods")]
        return [self._served[pair] for pair in pairs if pair in self._served]


def wrapped_pairs(config: Config) -> list[tuple[str, str]]:
    """(group, plural) of every kind in ``wrappedResources``."""
    return [
        (group.api_group, plural)
        for group in config.wrapped_resources
        for plural in group.resources
    ]


def catalog_entry(resource: Resource) -> catalog.Resource:
    """A served kind as an entry of the catalogue."""
    return catalog.Resource(
        resource.group, resource.version, resource.plural, resource.kind, resource.namespaced
    )
