"""Whether a dispatcher is at work, told from the Lease that every one of them must hold."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcad.api.wire import as_int, as_map, format_instant, parse_instant
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import LEASES

if TYPE_CHECKING:
    from mcad.api.config import Config

Json = dict[str, Any]

PRESENCE_POLL_S = 10.0  # how often who stays asks whether a dispatcher is running
LEASE_S = 15  # of a Lease that does not say how long it holds
SECOND_US = 1_000_000
SKEW_S = 5  # between the clocks of two machines that are kept well

NO_DISPATCHER = "NoDispatcher"
"""What an AppWrapper waits for that fits: the one word, as in the column WAITS-FOR."""


class Presence(Enum):
    """What the Lease says; UNKNOWN if it may not be read."""

    RUNNING = "running"
    ABSENT = "absent"
    UNKNOWN = "unknown"


NEVER_STARTS: Json = {
    "earliest": None,
    "latest": None,
    "restsOn": "",
    "why": "No dispatcher is running.",
}


class Heartbeat(Struct, frozen=True):
    """The state of the Lease. ``since`` is the last sign of a dispatcher, "" if there is none."""

    presence: Presence
    since: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell beside all figures: nothing, unless no dispatcher is running."""
        if self.presence is not Presence.ABSENT:
            return ()
        last = f" (the last one was heard from at {self.since})" if self.since else ""
        return (f"no dispatcher is running{last}: nothing is dispatched until one is started",)

    def tell(self, row: Json) -> Json:
        """The row of somebody in line, who goes next only if somebody dispatches."""
        if self.presence is Presence.ABSENT and row.get("starts"):
            row = row | {"starts": NEVER_STARTS}
        if row["position"] == 0 or row["waitsFor"] or self.presence is not Presence.ABSENT:
            return row
        return row | {"waitsFor": NO_DISPATCHER, "why": "It fits, but no dispatcher is running."}


RUNNING, UNKNOWN = Heartbeat(Presence.RUNNING), Heartbeat(Presence.UNKNOWN)


async def read_presence(client: Client, config: Config) -> Heartbeat:
    """Read the Lease now; whatever prevents that says nothing about the dispatcher."""
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
    if spec.get("holderIdentity") and at_us and now_us <= at_us + lasts_s * SECOND_US:
        return Heartbeat(Presence.RUNNING, since)
    return Heartbeat(Presence.ABSENT, since)
