"""Whether a dispatcher is running, by the Lease that every dispatcher must hold."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcad.api.wire import as_int, as_map, as_text, format_instant, parse_instant
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import LEASES

if TYPE_CHECKING:
    from mcad.api.config import Config

Json = dict[str, Any]

PRESENCE_POLL_S = 10.0  # between two reads of the Lease by a command that keeps running
LEASE_S = 15  # the duration of a Lease without leaseDurationSeconds
SECOND_US = 1_000_000
SKEW_S = 5  # tolerated clock skew


class Presence(Enum):
    """Whether a dispatcher is running; UNKNOWN if the Lease cannot be read."""

    RUNNING = "running"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Heartbeat(Struct, frozen=True):
    """The state of the Lease. ``since`` is its last renewal, "" if there was none; ``holder`` is
    the leader if it is running."""

    presence: Presence
    since: str = ""
    holder: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """A warning if no dispatcher is running."""
        if self.presence is not Presence.ABSENT:
            return ()
        last = f" (last Lease renewal: {self.since})" if self.since else ""
        return (f"no dispatcher is running{last}: nothing is dispatched until one is started",)


UNKNOWN = Heartbeat(Presence.UNKNOWN)


async def read_presence(client: Client, config: Config) -> Heartbeat:
    """Read the Lease; UNKNOWN if that fails."""
    lease = config.leader_election
    try:
        found = await client.get(LEASES, lease.namespace, lease.name)
    except ApiError as error:
        missing = error.not_found and error.details.get("name")
        return Heartbeat(Presence.ABSENT) if missing else UNKNOWN
    except KubeError:
        return UNKNOWN
    return _read(as_map(found.get("spec")), client.clock.now_us())


def _read(spec: Json, now_us: int) -> Heartbeat:
    at_us = parse_instant(spec.get("renewTime"))
    since = f"{format_instant(at_us // SECOND_US * SECOND_US) or ''}".replace(".000000Z", "Z")
    lasts_s = (as_int(spec.get("leaseDurationSeconds")) or LEASE_S) + SKEW_S
    holder = as_text(spec.get("holderIdentity"))
    if holder and at_us and now_us <= at_us + lasts_s * SECOND_US:
        return Heartbeat(Presence.RUNNING, since, holder)
    return Heartbeat(Presence.ABSENT, since)
