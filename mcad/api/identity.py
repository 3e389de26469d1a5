"""The settings about identity: the Lease of the leader, and the account that creates items."""

import re
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from mcad.api.labels import LEASE_NAME, LEASE_NAMESPACE
from mcad.api.strict import SECONDS, Strict

LEASE_SECONDS_MAX = 3600

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAMESPACE_MAX = 63
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_MAX = 253


def is_namespace(name: str) -> bool:
    """Whether a namespace can have this name."""
    return bool(_NAMESPACE.fullmatch(name)) and len(name) <= _NAMESPACE_MAX


def is_name(name: str) -> bool:
    """Whether an object can have this name."""
    return bool(_NAME.fullmatch(name)) and len(name) <= _NAME_MAX


class Impersonate(Strict):
    """The service account, in the namespace of each AppWrapper, that creates its items."""

    service_account: str = Field(
        alias="serviceAccount", description="The name of the service account."
    )

    @field_validator("service_account")
    @classmethod
    def _account(cls, value: str) -> str:
        if not is_name(value):
            raise ValueError(
                f"{value!r} is not the name of a service account; write it without a namespace"
            )
        return value

    def user(self, namespace: str) -> str:
        """The user name of the account (Kubernetes docs, Authenticating)."""
        return f"system:serviceaccount:{namespace}:{self.service_account}"


class LeaderElection(Strict):
    """The Lease that the leading dispatcher of a cluster holds, and its times in seconds.

    The duration is a whole number because it is one in the Lease.
    """

    namespace: str = Field(default=LEASE_NAMESPACE, description="The namespace of the Lease.")
    name: str = Field(default=LEASE_NAME, description="The name of the Lease.")
    lease_duration: Annotated[int, SECONDS] = Field(
        default=15,
        alias="leaseDuration",
        ge=1,
        le=LEASE_SECONDS_MAX,
        description="How long others wait after the last renewal before they take over.",
    )
    renew_deadline: Annotated[float, SECONDS] = Field(
        default=10,
        alias="renewDeadline",
        gt=0,
        le=LEASE_SECONDS_MAX,
        description="How long the leader tries to renew before it stops.",
    )
    retry_period: Annotated[float, SECONDS] = Field(
        default=2,
        alias="retryPeriod",
        gt=0,
        le=LEASE_SECONDS_MAX,
        description="The time between attempts to renew or to take over.",
    )

    @field_validator("namespace")
    @classmethod
    def _namespace(cls, value: str) -> str:
        if not is_namespace(value):
            raise ValueError(f"{value!r} is not the name of a namespace")
        return value

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if not is_name(value):
            raise ValueError(f"{value!r} is not the name of a Lease")
        return value

    @model_validator(mode="after")
    def _in_time(self) -> Self:
        """A holder stops before another one can begin; a renewal that fails can be retried."""
        if self.renew_deadline >= self.lease_duration:
            raise ValueError(
                f"renewDeadline ({self.renew_deadline:g}) must be less than leaseDuration "
                f"({self.lease_duration}): a holder must stop before another one begins"
            )
        if 2 * self.retry_period > self.renew_deadline:
            raise ValueError(
                f"retryPeriod ({self.retry_period:g}) must be at most half of renewDeadline "
                f"({self.renew_deadline:g}): there must be time to retry a failed renewal"
            )
        return self
