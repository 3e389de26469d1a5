"""Leader election: one Lease object, held by one process at a time.

What is safe about it (client-go's leader election, with what that leaves to its users):

- All judgements are made with the monotonic clock of this process. The times in the record are for
  people: whether another holder lives shows in its record *changing* while we look.
- Each write of the record carries its resourceVersion, so of two candidates one wins.
- The holder counts from the moment at which it *sent* the renewal, all others from the moment
  at which they *saw* it, so the holder's time always ends first.
- ``left`` is asked before every write of the holder and bounds it (``Fence``): none begins after
  the renew deadline, none is waited for longer than the lease lasts. That also holds for a process
  that was suspended and does not know it yet.
"""

import logging
from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec import Struct

from mcad.api.wire import as_int, as_map, as_text, format_instant
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import LEASES
from mcad.kube.types import Json

_log = logging.getLogger(__name__)

RELEASE_S = 1.0  # for the goodbye; without it the next leader waits until the lease has run out
ATTEMPTS = 3  # to renew, if each of them hangs, before the lease is given up
RELEASED_S = 1  # the duration of a released lease: the server wants more than 0
TRANSITIONS_MAX = 2**31 - 1  # leaseTransitions is an int32, which a server refuses beyond that
GRANT = "grant the dispatcher's rights with `mcad rbac | kubectl apply -f -`"


class LeaseLost(Exception):  # noqa: N818 - a verdict
    """This process does not lead any more; the message says why."""


class Terms(Struct, frozen=True):
    """Which Lease, and its times in seconds: ``retry_s`` < ``renew_deadline_s`` < ``duration_s``.

    A holder renews every ``retry_s``, stops writing ``renew_deadline_s`` after the last renewal
    that it knows of, and may be succeeded ``duration_s`` after it.
    """

    namespace: str
    name: str
    duration_s: int
    renew_deadline_s: float
    retry_s: float

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Record(Struct, frozen=True):
    """What a Lease says; read from whatever is there."""

    version: str
    holder: str
    duration_s: int
    transitions: int
    times: tuple[str, str]  # acquired and renewed, by the holder's wall clock: compared, never read

    @classmethod
    def of(cls, obj: Json) -> "Record":
        spec = as_map(obj.get("spec"))
        return cls(
            version=obj["metadata"]["resourceVersion"],
            holder=as_text(spec.get("holderIdentity")),
            duration_s=as_int(spec.get("leaseDurationSeconds")),
            transitions=as_int(spec.get("leaseTransitions")),
            times=(as_text(spec.get("acquireTime")), as_text(spec.get("renewTime"))),
        )

    @property
    def sign_of_life(self) -> tuple[object, ...]:
        """Changes whenever the holder has written; what others annotate does not count."""
        return (self.holder, self.transitions, self.times)


class Lease:
    """One process's hold of the Lease: ``acquire``, then ``hold`` until lost or ``release``."""

    def __init__(self, client: Client, terms: Terms, identity: str) -> None:
        """``identity`` is of this process alone. ``client`` must not be fenced by this lease."""
        self.terms = terms
        self.identity = identity
        self.leader = ""  # the holder as far as is known
        self.transitions = 0
        self._told = ""  # the sort of the trouble that was logged last
        self.trouble = ""  # why the Lease cannot be read or written at present
        self._client = client
        self._clock = client.clock
        self._version = ""
        self._renewed: float | None = None  # when the last renewal that succeeded was sent
        self._was_lost = False  # and not acquired again
        self._seen: Record | None = None  # another's record, and when it last changed
        self._seen_at = 0.0

    @property
    def is_held(self) -> bool:
        return self.left() > 0

    @property
    def epoch(self) -> int:
        """Of this hold; above those of all before it, as long as the object exists and its count
        has not wrapped. The core goes above every epoch in a status in any case (P12)."""
        return self.transitions + 1

    def left(self) -> float:
        """For how many seconds a write that begins now may last; 0 if none may begin."""
        if self._renewed is None:
            return 0.0
        since = self._clock.monotonic() - self._renewed
        return self.terms.duration_s - since if since < self.terms.renew_deadline_s else 0.0

    # -- becoming the holder -------------------------------------------------------------------

    async def acquire(self) -> None:
        """Return once this process holds it; failures are reported and retried, for ever."""
        while True:
            try:
                if await self._try():
                    return
            except ApiError as error:
                if not (error.conflict or error.already_exists):  # then another one was faster
                    self._in_trouble(error)
            except KubeError as error:
                self._in_trouble(error)
            await self._clock.sleep(self._until_next_look())

    async def _try(self) -> bool:
        """Read the Lease once, and take it if it is free. A write without an answer shows in the
        next read."""
        found = await self._read()
        if not self._is_free(found):
            self.trouble = ""
            return False
        sent = self._clock.monotonic()
        if found is None:
            self.transitions = 0 if self._seen is None else _next(self._seen.transitions)
            await self._create()
        else:
            # A record with our own name is that of a write without an answer, or of a lost hold.
            ours = found.holder == self.identity and not self._was_lost
            self.transitions = found.transitions if ours else _next(found.transitions)
            await self._write(found.version, self._claim(), self._patience())
            self._report_wrap(found)
        self._renewed, self.leader, self.trouble = sent, self.identity, ""
        self._was_lost = False
        _log.info("leading lease=%s identity=%s epoch=%d", self.terms, self.identity, self.epoch)
        return True

    def _report_wrap(self, before: Record) -> None:
        if self.transitions < before.transitions:
            _log.warning(
                "leaseTransitions of lease=%s was %d, which is the largest number that it can have:"
                " it begins at 0 again, and epochs go on above those in statuses",
                self.terms,
                before.transitions,
            )

    def _is_free(self, found: Record | None) -> bool:
        """Whether no other can be its holder. One that was deleted has not run out for that."""
        if found is not None and found.holder in ("", self.identity):
            return True
        now = self._clock.monotonic()
        if found is not None and (
            self._seen is None or self._seen.sign_of_life != found.sign_of_life
        ):
            if found.holder != self.leader:
                _log.info("standing by lease=%s leader=%s", self.terms, found.holder)
            self._seen, self._seen_at, self.leader = found, now, found.holder
            self.transitions = found.transitions
        return self._seen is None or now >= self._runs_out(self._seen)

    def _runs_out(self, seen: Record) -> float:
        """When another process may take the Lease, by the duration in the record if it has one."""
        return self._seen_at + (seen.duration_s if seen.duration_s > 0 else self.terms.duration_s)

    def _until_next_look(self) -> float:
        """When to read again: twice per renewal of the holder, and when the Lease runs out."""
        pause = self.terms.retry_s / 2
        if self._seen is not None:
            left = self._runs_out(self._seen) - self._clock.monotonic()
            if 0 < left < pause:
                return left
        return pause

    # -- being the holder ----------------------------------------------------------------------

    async def hold(self) -> NoReturn:
        """Renew for as long as that works; raises ``LeaseLost``."""
        pause = self.terms.retry_s
        while True:
            await self._clock.sleep(pause)
            begun = self._clock.monotonic()
            if not self.is_held:
                raise self._lost(f"it was not renewed for {self.terms.renew_deadline_s:g} s")
            try:
                await self._renew()
            except KubeError as error:
                self._in_trouble(error)
            took = self._clock.monotonic() - begun
            pause = max(min(self.terms.retry_s - took, self._until_deadline()), 0.0)

    async def _renew(self) -> None:
        sent = self._clock.monotonic()
        try:
            await self._write(self._version, {"renewTime": self._now()}, self._patience())
        except ApiError as error:
            if error.conflict:
                await self._look_who_holds()
                return
            if not error.not_found:
                raise
            await self._create()  # it was deleted by hand: it is still ours
        self._renewed, self.trouble = sent, ""

    async def _look_who_holds(self) -> None:
        """The record differs from ours: annotated, renewed without an answer, or of another holder.

        If it is, the next renewal goes by the version that is found here.
        """
        found = await self._read()
        if found is None:
            return
        if found.holder != self.identity:
            self.leader = found.holder
            raise self._lost(f"{found.holder or 'no process'} holds it now")
        self._version = found.version

    def _lost(self, why: str) -> LeaseLost:
        self._renewed, self._was_lost = None, True
        return LeaseLost(f"the lease {self.terms} of {self.identity} is lost: {why}")

    def _until_deadline(self) -> float:
        if self._renewed is None:
            return 0.0
        return self._renewed + self.terms.renew_deadline_s - self._clock.monotonic()

    def _patience(self) -> float:
        """The timeout of one request: time is left for others, and none outlasts the deadline."""
        whole = self.terms.renew_deadline_s / ATTEMPTS
        return whole if self._renewed is None else min(whole, self._until_deadline())

    # -- giving it back --------------------------------------------------------------------------

    async def release(self) -> None:
        """Release the Lease for another leader; no write of ours may be under way."""
        if not self.is_held:
            return
        self._renewed = None
        goodbye = {
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_S,
            "renewTime": self._now(),
        }
        try:
            try:
                await self._write(self._version, goodbye, RELEASE_S)
            except ApiError as error:
                if not error.conflict:
                    raise
                found = await self._read(RELEASE_S)  # a renewal that we did not wait for
                if found is not None and found.holder == self.identity:
                    await self._write(found.version, goodbye, RELEASE_S)
        except KubeError as error:
            _log.warning("lease not released lease=%s error=%s", self.terms, error)
        else:
            _log.info("lease released lease=%s", self.terms)

    # -- requests --------------------------------------------------------------------------------

    async def _read(self, timeout_s: float | None = None) -> Record | None:
        """The record as it is, None if there is no such object."""
        terms = self.terms
        try:
            found = await self._client.get(
                LEASES, terms.namespace, terms.name, timeout=timeout_s or self._patience()
            )
        except ApiError as error:
            if error.not_found:
                return None
            raise
        return Record.of(found)

    async def _create(self) -> None:
        body: Json = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self.terms.name, "namespace": self.terms.namespace},
            "spec": self._claim(),
        }
        made = await self._client.create(
            LEASES, self.terms.namespace, body, timeout=self._patience()
        )
        self._version = made["metadata"]["resourceVersion"]

    async def _write(self, version: str, spec: Mapping[str, Any], timeout_s: float) -> None:
        patch: Json = {"metadata": {"resourceVersion": version}, "spec": dict(spec)}
        terms = self.terms
        answer = await self._client.patch(LEASES, terms.namespace, terms.name, patch, timeout_s)
        self._version = answer["metadata"]["resourceVersion"]

    def _claim(self) -> Json:
        now = self._now()
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.terms.duration_s,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": self.transitions,
        }

    def _now(self) -> str | None:
        return format_instant(self._clock.now_us())

    def _in_trouble(self, error: KubeError) -> None:
        """Log a failure once per kind: a refusal may contain the time of each try.

        A right that is missing is named with its remedy.
        """
        denied = isinstance(error, ApiError) and error.forbidden
        trouble = f"{error}; {GRANT}" if denied else str(error)
        if not self.trouble or _sort_of(error) != self._told:
            _log.warning("lease trouble lease=%s error=%s", self.terms, trouble)
        self.trouble, self._told = trouble, _sort_of(error)


def _next(transitions: int) -> int:
    """The count after one more change of the holder; after the largest number comes 0."""
    return transitions + 1 if 0 <= transitions < TRANSITIONS_MAX else 0


def _sort_of(error: KubeError) -> str:
    """The kind of a failure, equal while one cause lasts."""
    if isinstance(error, ApiError):
        return f"{error.status} {error.reason}"
    return type(error).__name__
