"""The setting ``scaleUp``: whether and how an autoscaler is asked for nodes."""

from enum import StrEnum

from pydantic import Field, StrictInt, field_validator

from mcad.api.labels import key_fault
from mcad.api.strict import Seconds, Strict
from mcad.api.wire import Json

MAX_CONCURRENT = 100
MAX_SECONDS = 24 * 3600
GROUP = "autoscaling.x-k8s.io"


class Via(StrEnum):
    """How an autoscaler is asked."""

    OFF = "off"
    AUTO = "auto"  # by the first of the kinds below that the cluster serves, never by pods
    PROVISIONING_REQUEST = "ProvisioningRequest"
    CAPACITY_BUFFER = "CapacityBuffer"
    PLACEHOLDER_PODS = "PlaceholderPods"


PLURALS = {
    Via.PROVISIONING_REQUEST: "provisioningrequests",
    Via.CAPACITY_BUFFER: "capacitybuffers",
}
"""The kinds of the autoscaler, in the order in which ``auto`` takes them."""


class ScaleUpSettings(Strict):
    """Requests for nodes in clusters that grow."""

    via: Via = Field(
        default=Via.OFF,
        description=(
            "How an autoscaler is asked for the nodes that the next AppWrappers lack: by a "
            "ProvisioningRequest, a CapacityBuffer, or pods of low priority in their place "
            "(PlaceholderPods). auto: by the first of these two kinds that the cluster serves. "
            "off: it is not asked."
        ),
    )
    concurrent: StrictInt = Field(
        default=5,
        ge=1,
        le=MAX_CONCURRENT,
        description="How many AppWrappers wait for new nodes at a time.",
    )
    timeout: Seconds = Field(
        default=900,
        ge=1,
        le=MAX_SECONDS,
        description="How long an AppWrapper waits for its nodes before another gets its turn.",
    )
    startup_taints: tuple[str, ...] = Field(
        default=(),
        alias="startupTaints",
        description=(
            "Keys of taints that new nodes have until they are usable, besides those of Kubernetes."
        ),
    )

    @field_validator("via", mode="before")
    @classmethod
    def _via(cls, value: Json) -> Json:
        return Via.OFF if value is False else value  # as YAML reads the word off

    @field_validator("startup_taints")
    @classmethod
    def _taints(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for key in value:
            if message := key_fault(key):
                raise ValueError(f"{key!r} is not the key of a taint: {message}")
        return tuple(sorted(set(value)))

    @property
    def is_on(self) -> bool:
        """Whether an autoscaler is asked at all."""
        return self.via is not Via.OFF

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """(group, plural) of the kinds that may be asked by, the preferred one first."""
        return tuple(
            (GROUP, plural) for via, plural in PLURALS.items() if self.via in (via, Via.AUTO)
        )
