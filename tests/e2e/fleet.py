"""Many AppWrappers at once: everything that was asked for or made.

Counts come from the API server: its audit log for requests, a watch of the admin for objects.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mcad.api.labels import APPWRAPPER_UID, ATTEMPT, ITEM, KIND
from tests.controlplane.audit import AuditEntry
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import USER

Json = dict[str, Any]

LONG = 120  # seconds; the machine is shared, and no test asserts how long something takes
QUIET_SECONDS = 2.0
ASIDE = ("events", "selfsubjectaccessreviews", "leases")
"""What the dispatcher writes besides: Events, reviews of its rights, renewals of its lease."""
CHECK = re.compile(r"[?&]limit=1(&|$)")
"""The list of one object by which a watch that told nothing is checked (ADR 43)."""


# -- requests ------------------------------------------------------------------------------------


def ours(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """The requests of the dispatcher."""
    return [entry for entry in entries if entry.user == USER]


def writes(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """The dispatcher's writes, but for those that are made aside."""
    return [one for one in ours(entries) if one.is_write and one.resource not in ASIDE]


def events(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """The Events that the dispatcher wrote."""
    return [one for one in ours(entries) if one.is_write and one.resource == "events"]


def reads(entries: Iterable[AuditEntry]) -> Counter[tuple[str, str]]:
    """Its lists and gets as (verb, resource), but for the lease; discovery reads no object."""
    found = [one for one in ours(entries) if one.verb in ("get", "list") and one.resource]
    found = [one for one in found if one.resource != "leases"]
    return Counter((one.verb, one.resource) for one in found)


def watches(entries: Iterable[AuditEntry]) -> Counter[str]:
    """How often it began to watch each resource.

    The API server ends a watch whose reader, or whose own side, gets too little of the processor;
    the watch then goes on from where it ended. So only the first of each kind can be foretold.
    """
    return Counter(one.resource for one in ours(entries) if one.verb == "watch")


def is_routine(entry: AuditEntry) -> bool:
    """Whether the dispatcher asks for this also when nothing happens.

    The leader renews its lease every other second, each watch begins anew every 15 s at most, and
    one that told nothing is checked: with several kinds no 10 s pass without any of these.
    """
    return entry.resource == "leases" or entry.verb == "watch" or is_check(entry)


def is_check(entry: AuditEntry) -> bool:
    """Whether this is the check of a watch that told nothing."""
    return entry.verb == "list" and CHECK.search(entry.uri) is not None


def wait_until_quiet(plane: ControlPlane, seconds: float = QUIET_SECONDS) -> None:
    """Until the dispatcher has asked the API server for nothing but its routine for a while."""
    mark, since = plane.audit_mark(), time.monotonic()

    def quiet() -> bool:
        nonlocal mark, since
        now = plane.audit_mark()
        if not all(map(is_routine, ours(plane.audit(mark)))):
            since = time.monotonic()
        mark = now
        return time.monotonic() - since >= seconds

    plane.wait_for(quiet, LONG, "no request of the dispatcher")


# -- a watch of the admin ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sight:
    """One event of a watch. ``version`` orders the events of all kinds: it is etcd's revision."""

    type: str
    kind: str
    version: int
    object: Json

    @property
    def uid(self) -> str:
        uid: str = self.object["metadata"]["uid"]
        return uid

    @property
    def name(self) -> str:
        name: str = self.object["metadata"]["name"]
        return name

    @property
    def made_for(self) -> tuple[str, str, str]:
        """(uid of the AppWrapper, attempt, item) by its labels; empty if it has none."""
        labels = self.object["metadata"].get("labels", {})
        return labels.get(APPWRAPPER_UID, ""), labels.get(ATTEMPT, ""), labels.get(ITEM, "")

    @property
    def is_item(self) -> bool:
        """Whether an AppWrapper controls it directly."""
        owners = self.object["metadata"].get("ownerReferences", [])
        return any(one["kind"] == KIND and one.get("controller") for one in owners)


class Bystander:
    """Watches kinds from the beginning, as the admin, and forgets nothing.

    A process per kind writes what the API server sends into a log, so a busy test misses nothing.
    A watch that the server ended goes on from where it was at the next look.
    """

    def __init__(self, plane: ControlPlane, *paths: str) -> None:
        self._plane = plane
        self._paths = {f"bystander{path.replace('/', '-')}": path for path in paths}
        for name in self._paths:
            self._watch(name, "")

    def _watch(self, name: str, version: str) -> None:
        kubectl = [
            str(self._plane.layout.bin / "kubectl"),
            f"--kubeconfig={self._plane.admin_kubeconfig}",
            f"--cache-dir={self._plane.folder / 'kubectl-cache'}",
        ]
        query = f"watch=1&timeoutSeconds=3600&resourceVersion={version}"
        self._plane.spawn(name, [*kubectl, "get", "--raw", f"{self._paths[name]}?{query}"])

    def sights(self) -> list[Sight]:
        """Everything so far, in the order in which it happened."""
        self.resume()
        found = [one for name in self._paths for one in self._read(name)]
        return sorted(found, key=lambda one: one.version)

    def resume(self) -> None:
        """Go on with the watches that the server ended.

        Nothing is seen while no watch runs, and the next one may begin too late for it. A test
        that reads ``sights`` only at its end calls this meanwhile.
        """
        for name in self._paths:
            if self._plane.process(name).poll() is not None:
                seen = list(self._read(name))
                self._watch(name, str(seen[-1].version) if seen else "")

    def _read(self, name: str) -> Iterator[Sight]:
        whole, _, _ = self._plane.log(name).read_text().rpartition("\n")
        for line in whole.splitlines():
            event = json.loads(line)
            thing = event["object"]
            assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
            version = int(thing["metadata"]["resourceVersion"])
            yield Sight(event["type"], thing["kind"], version, thing)
