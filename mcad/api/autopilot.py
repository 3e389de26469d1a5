"""Autopilot's labels of nodes that are unfit for a resource, read as if they were taints.

A node affinity keeps pods that request the resource off such nodes; the scheduler and the fit test
both see it. Running pods have to leave a node whose label evicts.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Self

from msgspec import Struct
from pydantic import Field, StrictInt, field_validator

from mcad.api.affinity import node_affinity, prefer, require
from mcad.api.labels import key_fault, value_fault
from mcad.api.podspec import quantity
from mcad.api.strict import Strict
from mcad.api.wire import Map, as_list, as_map

Values = dict[str, list[str]]
"""Values of labels to be avoided, by key."""

Evictions = tuple[tuple[str, str, str], ...]
"""(resource, key, value) of the labels of a node that pods which use the resource have to leave."""


class Effect(StrEnum):
    """What a label means for pods that request the resource."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"


class LabelTaint(Strict):
    """A node label that is read as a taint."""

    key: str
    value: str
    effect: Effect

    @field_validator("key")
    @classmethod
    def _key(cls, value: str) -> str:
        if message := key_fault(value):
            raise ValueError(message)
        return value

    @field_validator("value")
    @classmethod
    def _value(cls, value: str) -> str:
        if message := value_fault(value):
            raise ValueError(message)
        return value


_HEALTH = "autopilot.ibm.com/gpuhealth"
DEFAULT_TAINTS: dict[str, tuple[LabelTaint, ...]] = {
    "nvidia.com/gpu": (
        LabelTaint(key=_HEALTH, value="WARN", effect=Effect.PREFER_NO_SCHEDULE),
        LabelTaint(key=_HEALTH, value="TESTING", effect=Effect.NO_SCHEDULE),
        LabelTaint(key=_HEALTH, value="EVICT", effect=Effect.NO_EXECUTE),
    )
}


class AutopilotSettings(Strict):
    """The setting ``autopilot``: which labels count, and for which resources."""

    inject_anti_affinities: bool = Field(
        default=True,
        alias="injectAntiAffinities",
        description="Keep new pods away from nodes with such labels by a node affinity.",
    )
    monitor_nodes: bool = Field(
        default=True,
        alias="monitorNodes",
        description=(
            "Reset AppWrappers with pods on nodes that are labelled with a NoExecute value."
        ),
    )
    prefer_no_schedule_weight: StrictInt = Field(
        default=50,
        alias="preferNoScheduleWeight",
        ge=1,
        le=100,
        description="The weight of the affinity for PreferNoSchedule.",
    )
    resource_taints: dict[str, tuple[LabelTaint, ...]] = Field(
        default=DEFAULT_TAINTS,
        alias="resourceTaints",
        description="By resource, labels of nodes as {key, value, effect}.",
    )

    @property
    def evictions(self) -> Evictions:
        """The labels that evict pods."""
        if not self.monitor_nodes:
            return ()
        return tuple(
            (resource, taint.key, taint.value)
            for resource, taints in sorted(self.resource_taints.items())
            for taint in taints
            if taint.effect is Effect.NO_EXECUTE
        )


def evicted(tags: Map, evictions: Evictions) -> tuple[str, ...]:
    """The resources whose pods have to leave a node with these labels."""
    if not evictions:
        return ()
    found = (resource for resource, key, value in evictions if tags.get(key) == value)
    return tuple(dict.fromkeys(found))


class Avoidance(Struct, frozen=True):
    """Node affinity for pod templates that request one of these resources."""

    taints: dict[str, tuple[LabelTaint, ...]]
    weight: int

    @classmethod
    def of(cls, settings: AutopilotSettings) -> Self:
        """From the settings."""
        taints = settings.resource_taints if settings.inject_anti_affinities else {}
        return cls(taints, settings.prefer_no_schedule_weight)

    def concerns(self, template: Map) -> bool:
        """Whether a pod template requests one of these resources."""
        return bool(self.taints) and any(self._requested(template))

    def add(self, template: Map) -> None:
        """Keep the pods of a template off such nodes; existing affinity stays as it is."""
        must: Values = {}
        should: Values = {}
        for resource in sorted(set(self._requested(template))):
            for taint in self.taints[resource]:
                values = should if taint.effect is Effect.PREFER_NO_SCHEDULE else must
                values.setdefault(taint.key, []).append(taint.value)
        nodes = node_affinity(template) if must or should else None
        if nodes is not None:
            require(nodes, "matchExpressions", _expressions(must))
            if should:
                prefer(nodes, {"matchExpressions": _expressions(should)}, self.weight)

    def _requested(self, template: Map) -> Iterator[str]:
        spec = as_map(template.get("spec"))
        names = self.taints.keys()
        for container in (*as_list(spec.get("containers")), *as_list(spec.get("initContainers"))):
            resources = as_map(as_map(container).get("resources"))
            for key in ("requests", "limits"):
                amounts = as_map(resources.get(key))
                if not names.isdisjoint(amounts):
                    yield from (name for name in names if quantity(name, amounts.get(name)))


NO_AVOIDANCE = Avoidance({}, 1)


def _expressions(values: Values) -> list[Map]:
    return [
        {"key": key, "operator": "NotIn", "values": list(dict.fromkeys(some))}
        for key, some in values.items()
    ]
