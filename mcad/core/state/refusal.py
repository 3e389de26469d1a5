"""Why a gang does not fit now, with the figures of the verdict."""

from typing import NamedTuple

from mcad.core.state.not_checked import not_checked
from mcad.core.state.quantity import format_amount
from mcad.core.state.records import Struct
from mcad.core.state.waiting_reason import WaitingReason

HOST_PORT = "host port"
"""The beginning of the ``resource`` of a host port's shortage: ``host port 8080/TCP``."""


_ABSENT = "No node that admits its pods has it: {figures}"
_DEVICES = (
    "Devices that only dynamic resource allocation serves (extendedResourceName of a DeviceClass) "
    "are not supported."
)


class Shortage(NamedTuple):
    """One resource of a refusal: the request of the gang, and the available amount.

    For a host port the figures are how many nodes it needs, and on how many of them it is free. A
    tuple, because each refusal makes several, and there are thousands in a pass.
    """

    resource: str
    requested: int
    available: int

    @property
    def missing(self) -> int:
        """The missing amount; 0 if this resource suffices."""
        return max(0, self.requested - self.available)

    @property
    def message(self) -> str:
        """The figures as a sentence."""
        name, requested, available = self
        if not name.startswith(HOST_PORT):
            lack = f", {format_amount(name, self.missing)} missing" if self.missing else ""
            wanted, there = format_amount(name, requested), format_amount(name, available)
            return f"{name}: {wanted} requested, {there} available{lack}."
        if not available:
            return f"H{name[1:]} is taken on every node that admits the pods."
        return f"H{name[1:]} is needed on {requested} nodes and free on {available}."


class QuotaLimit(NamedTuple):
    """The refusal of a quota tree: the share of a ``node`` above the ``leaf``, or, with "" as the
    ``node``, the leaf itself. ``is_absent``: a QuotaSubtree of the tree is gone and counts as
    before."""

    tree: str
    leaf: str
    node: str = ""
    resource: str = ""
    requested: int = 0
    nominal: int = 0
    used: int = 0
    is_absent: bool = False


class DomainLimit(NamedTuple):
    """The refusal by the topology of a pod set: how many domains of the ``level`` (a node label)
    there are, and the ``nearest`` of them with its number of places for the ``needed`` pods."""

    level: str
    domains: int
    needed: int
    nearest: str = ""
    places: int = 0

    @property
    def message(self) -> str:
        """The figures as a sentence."""
        if not self.domains:
            return f"No node has the label {self.level}."
        count = "The only domain" if self.domains == 1 else f"None of {self.domains} domains"
        has = "lacks" if self.domains == 1 else "has"
        missing, nearest = self.needed - self.places, "."
        if self.nearest:
            lack = f": {missing} missing" if missing > 0 else " in sum"
            nearest = f"; the nearest, {self.nearest}, has {self.places}{lack}."
        return f"{count} of {self.level} {has} {self.needed} places{nearest}"


class Refusal(Struct, frozen=True):
    """A verdict that a gang does not fit, with its figures.

    ``item`` and ``index`` name the pod set that refused it (-1: the gang as a whole), ``missing``
    the pods of that set without a place (at least), ``shortages`` every resource that the gang
    needs, the binding one first. ``unmodelled`` names predicates that were not looked at. A refusal
    by topology has a ``domain`` instead of these fields, a refusal by ``quota`` has none of them.
    Where no node admits its pods, ``obstacle`` names what keeps them off (nodes/obstacle.py).
    """

    reason: WaitingReason
    shortages: tuple[Shortage, ...] = ()
    item: int = -1
    index: int = -1
    missing: int = 0
    unmodelled: tuple[str, ...] = ()
    quota: QuotaLimit | None = None
    domain: DomainLimit | None = None
    obstacle: str = ""

    @property
    def figures(self) -> tuple[Shortage, ...]:
        """The needed resources, the binding one first; for a quota refusal its resource."""
        limit = self.quota
        if limit is None or not limit.node:
            return self.shortages
        available = max(0, limit.nominal - limit.used)
        return (Shortage(limit.resource, limit.requested, available),)

    @property
    def binding(self) -> str:
        """The binding resource, "" if no single resource decides; for a quota tree with the
        node."""
        if self.quota is not None:
            tree, leaf, node, resource = self.quota[:4]
            return f"{tree}/{node}:{resource}" if node else f"{tree}/{leaf}"
        return self.shortages[0].resource if self.shortages else ""

    @property
    def code(self) -> str:
        """The reason of the wait, in one word."""
        return self.binding or self.reason.value

    @property
    def message(self) -> str:
        """The figures, in one sentence per fact; stable for equal refusals. A refusal by quota is
        explained by the trees (quota/explain.py)."""
        short = [one for one in self.shortages if one.missing] or self.shortages[:1]
        text = _ABSENT if self._is_absent else self.reason.text
        figures = " ".join(one.message for one in short)
        facts = [text.format(figures=figures, obstacle=self.obstacle)]
        if self._is_absent and "/" in self.binding:
            facts.append(_DEVICES)
        if self.domain is not None:
            facts.append(self.domain.message)
        if self.item >= 0 and self.missing:
            pods = "1 pod" if self.missing == 1 else f"{self.missing} pods"
            facts.append(f"No place for {pods} of item {self.item}.")
        facts.append(not_checked(self.unmodelled))
        return " ".join(filter(None, facts))

    @property
    def _is_absent(self) -> bool:
        """Whether one pod asks for a resource that no node has, so that no size would do."""
        is_large = self.reason is WaitingReason.TOO_LARGE and bool(self.shortages)
        return is_large and not self.shortages[0].available

    @property
    def rests_on_absence(self) -> bool:
        """Whether the refusal is by a quota tree of which a QuotaSubtree is absent."""
        return self.quota is not None and self.quota.is_absent

    @property
    def signature(self) -> tuple[WaitingReason, str, bool]:
        """The part of a refusal whose change is worth another write (design section 5)."""
        return (self.reason, self.binding, self.rests_on_absence)
