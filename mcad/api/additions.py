"""Additions of the configuration to every wrapped pod template.

They are merged when a manifest is read, before its demand is computed. So the fit test sees what
will be created, and the hash of the payload covers it (P8): a new configuration changes queued
AppWrappers, not running ones.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Self

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field, StrictStr, field_validator

from mcad.api import labels
from mcad.api.autopilot import NO_AVOIDANCE, AutopilotSettings, Avoidance
from mcad.api.located_fields import Fault, join
from mcad.api.models import PodSetInfo, SchedulingGate
from mcad.api.podsetinfos import Contradiction, merge_into
from mcad.api.scale_up.kept import KEPT
from mcad.api.strict import Strict
from mcad.api.templates import PathError, find_templates, follow, set_path
from mcad.api.wire import Json, Map

NOTHING = PodSetInfo()


class Toleration(Strict):
    """A toleration, as in a pod spec."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = Field(default=None, alias="tolerationSeconds")

    @field_validator("operator")
    @classmethod
    def _operator(cls, value: str | None) -> str | None:
        if value not in (None, "Equal", "Exists"):
            raise ValueError(f"{value!r} is not an operator: use Equal or Exists")
        return value

    @field_validator("effect")
    @classmethod
    def _effect(cls, value: str | None) -> str | None:
        if value not in (None, "NoSchedule", "PreferNoSchedule", "NoExecute"):
            raise ValueError(
                f"{value!r} is not an effect: use NoSchedule, PreferNoSchedule or NoExecute"
            )
        return value


class Gate(Strict):
    """A scheduling gate: the pod is not scheduled until the gate is removed."""

    name: str

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if message := labels.key_fault(value):
            raise ValueError(message)
        return value


class Injection(Strict):
    """The setting ``inject``: additions to every pod, in the form of ``podSetInfos``."""

    labels: dict[str, StrictStr] = Field(default_factory=dict, description="Labels of the pods.")
    annotations: dict[str, StrictStr] = Field(
        default_factory=dict, description="Annotations of the pods."
    )
    node_selector: dict[str, StrictStr] = Field(
        default_factory=dict, alias="nodeSelector", description="Node selector of the pods."
    )
    tolerations: tuple[Toleration, ...] = Field(default=(), description="Tolerations of the pods.")
    scheduling_gates: tuple[Gate, ...] = Field(
        default=(), alias="schedulingGates", description="Scheduling gates of the pods, as {name}."
    )

    @field_validator("labels", "node_selector")
    @classmethod
    def _labels(cls, value: dict[str, str]) -> dict[str, str]:
        for key, one in value.items():
            if message := labels.key_fault(key) or labels.value_fault(one):
                raise ValueError(message)
        return value

    @field_validator("labels")
    @classmethod
    def _not_ours(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if key in labels.OURS:
                raise ValueError(f"{key} is set by the dispatcher itself; remove it")
        return value

    @field_validator("annotations")
    @classmethod
    def _annotations(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if message := labels.key_fault(key):
                raise ValueError(message)
        return value

    def info(self) -> PodSetInfo:
        """The same in the form of ``podSetInfos``."""
        return PodSetInfo(
            annotations=self.annotations,
            labels=self.labels,
            nodeSelector=self.node_selector,
            tolerations=[
                one.model_dump(by_alias=True, exclude_none=True) for one in self.tolerations
            ],
            schedulingGates=[SchedulingGate(name=one.name) for one in self.scheduling_gates],
        )


class Additions(Struct, frozen=True):
    """All additions. ``scheduler`` is set in templates that name none; "" sets nothing."""

    injected: PodSetInfo = NOTHING
    scheduler: str = ""
    avoidance: Avoidance = NO_AVOIDANCE
    keeps_pods: bool = False  # spec.scaleUp.keepPods

    @classmethod
    def of(cls, injection: Injection, scheduler: str, autopilot: AutopilotSettings) -> Self:
        """From the settings."""
        injected = injection.info() if injection != Injection() else NOTHING
        return cls(injected, scheduler, Avoidance.of(autopilot))

    def keeping(self, *, keeps_pods: bool) -> "Additions":
        """With the annotations that keep autoscalers from moving pods, if those are asked for."""
        return replace(self, keeps_pods=True) if keeps_pods else self

    def add(
        self, manifest: Map, paths: Sequence[str], templates: Sequence[Map]
    ) -> tuple[Map, list[Fault]]:
        """Return the manifest with all additions; the same object if there is nothing to add.

        ``paths`` are pod templates that a search by shape might miss; ``templates`` are those that
        the demand was read from.
        """
        for_all = self.injected is not NOTHING or self.scheduler or self.keeps_pods
        if not for_all and not any(map(self.avoidance.concerns, templates)):
            return manifest, []
        added: Map = copy.deepcopy(manifest)
        faults: list[Fault] = []
        for path, template in _templates(added, paths):
            faults += merge_into(template, self.injected, _of_configuration(path))
            if self.keeps_pods:
                faults += merge_into(template, KEPT, _of_keep_pods(path))
            if self.scheduler and template["spec"].get("schedulerName") in (None, ""):
                template["spec"]["schedulerName"] = self.scheduler
            self.avoidance.add(template)
        return added, faults


NO_ADDITIONS = Additions()


def _templates(manifest: Map, paths: Sequence[str]) -> Iterator[tuple[str, Map]]:
    """Each pod template once, with its path."""
    seen: set[int] = set()
    spots = ((set_path(spot.path), spot.template) for spot in find_templates(manifest))
    for path, template in (*_at(manifest, paths), *spots):
        if id(template) not in seen:
            seen.add(id(template))
            yield path, template


def _at(manifest: Map, paths: Sequence[str]) -> Iterator[tuple[str, Map]]:
    for path in paths:
        try:
            yield path, follow(path, manifest)
        except PathError:
            continue  # the operator makes it, or it is a fault that is reported elsewhere


def _of_keep_pods(path: str) -> Contradiction:
    def fault(place: str, key: str, value: str, given: Json) -> Fault:
        message = f"is {given!r}, but spec.scaleUp.keepPods sets {value!r}; remove one of them."
        return Fault(join(path, f"{place}.{key}"), message)

    return fault


def _of_configuration(path: str) -> Contradiction:
    def fault(place: str, key: str, value: str, given: Json) -> Fault:
        setting = place.rpartition(".")[2]
        message = (
            f"is {given!r}, but the dispatcher is configured to set {value!r} in every pod "
            f"(inject.{setting}); remove it, or ask an administrator."
        )
        return Fault(join(path, f"{place}.{key}"), message)

    return fault
