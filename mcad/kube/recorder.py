"""Events (events.k8s.io/v1): valid, without repetition, and limited per object.

Events are for people; losing one is a number in a counter. Recording must not raise, block or
grow without bounds, and no decision may depend on it.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn, Self

from msgspec import Struct

from mcad.kube.client import EVENTS, Client
from mcad.kube.errors import KubeError
from mcad.kube.types import Json

# Limits of the API server's validation (pkg/apis/core/validation/events.go), in UTF-8 bytes.
NOTE_BYTES_MAX = 1024
WORD_BYTES_MAX = 128  # reason, action, reportingInstance
NAME_CHARS_MAX = 253


class Regarding(Struct, frozen=True):
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str  # empty for cluster-scoped objects
    name: str
    uid: str
    resource_version: str = ""

    @classmethod
    def of(cls, obj: Json) -> Self:
        metadata = obj["metadata"]
        return cls(
            obj["apiVersion"],
            obj["kind"],
            metadata.get("namespace", ""),
            metadata["name"],
            metadata["uid"],
            metadata.get("resourceVersion", ""),
        )


class Reporter(Struct, frozen=True):
    """The reporter: ``controller`` is a qualified name, ``instance`` the pod for example."""

    controller: str
    instance: str


class Limits(Struct, frozen=True):
    """How much is said. Per object: ``burst`` Events at once, then one per ``refill_s``."""

    repeat_s: float = 600.0  # the same reason and note about the same object again: not before
    burst: int = 25
    refill_s: float = 300.0  # client-go's spam filter has these two numbers
    objects_max: int = 10_000  # of which it is remembered what was said
    queue_max: int = 5_000  # Events waiting to be written
    moment_s: float = 15.0  # for how long an Event waits while writes queue up
    look_s: float = 1.0  # how often it is looked whether they still do
    calm: int = 3  # looks in a row without end the wait


@dataclass(slots=True)
class Counts:
    """What became of the Events, for metrics."""

    written: int = 0
    repeated: int = 0  # suppressed: said before
    limited: int = 0  # suppressed: too many about one object
    overtaken: int = 0  # suppressed: another one came before it was written
    dropped: int = 0  # the queue was full
    failed: int = 0  # refused, or lost on the way


@dataclass(slots=True)
class _Account:
    """What was said about one object: (reason, note) -> when, and the tokens left."""

    tokens: float
    at: float
    said: dict[tuple[str, str], float] = field(default_factory=dict)


class Recorder:
    """Takes Events at once and writes them from ``run``, in order per task that runs it."""

    def __init__(self, client: Client, reporter: Reporter, limits: Limits | None = None) -> None:
        """``run`` must be running for anything to be written. ``is_busy`` may be set: whether other
        writes queue up."""
        self.is_busy: Callable[[], bool] = lambda: False
        self.counts = Counts()
        self._client = client
        self._reporter = reporter
        self._limits = limits or Limits()
        self._accounts: OrderedDict[str, _Account] = OrderedDict()
        self._held: dict[str, tuple[float, Json]] = {}  # until when, by the uid of the object
        self._releasing: asyncio.Task[None] | None = None
        self._queue: asyncio.Queue[Json] = asyncio.Queue(self._limits.queue_max)

    def record(
        self, regarding: Regarding, reason: str, note: str, *, action: str, warning: bool = False
    ) -> None:
        """Say ``note`` about an object, unless it was said lately or too much was. Never raises.

        ``reason`` and ``action`` are CamelCase words; too long ones are cut, like the note. Where
        writes queue up, an Event that is no warning waits for a moment. If another one about the
        same object comes meanwhile, only the later one is written: the state before is over.
        """
        note = _cut(note, NOTE_BYTES_MAX)
        if not self._may_say(regarding.uid, reason, note):
            return
        event = self._event(regarding, reason, note, action)
        event["type"] = "Warning" if warning else "Normal"
        if not warning and (self.is_busy() or regarding.uid in self._held):
            self._hold(regarding.uid, event)
        else:
            self._put(event)

    def _hold(self, uid: str, event: Json) -> None:
        until = self._client.clock.monotonic() + self._limits.moment_s
        if uid in self._held:
            until = self._held[uid][0]
            self.counts.overtaken += 1
        self._held[uid] = until, event
        if len(self._held) > self._limits.queue_max:
            self._put(self._held.pop(uid)[1])
        elif self._releasing is None:
            self._releasing = asyncio.ensure_future(self._release())

    async def _release(self) -> None:
        """Write held Events whose moment is over; all of them once no writes queue up."""
        calm = 0
        while self._held:
            await self._client.clock.sleep(self._limits.look_s)
            now, calm = self._client.clock.monotonic(), 0 if self.is_busy() else calm + 1
            for uid, (until, event) in list(self._held.items()):
                if calm < self._limits.calm and now < until:
                    break
                del self._held[uid]
                self._put(event)
        self._releasing = None

    def _put(self, event: Json) -> None:
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self.counts.dropped += 1

    async def run(self) -> NoReturn:
        """Write Events until cancelled; run it in as many tasks as writes may be under way."""
        while True:
            await self._write(await self._queue.get())

    async def drain(self) -> None:
        """Write what is still waiting, at shutdown; the caller bounds the time."""
        if self._releasing is not None:
            self._releasing.cancel()
        for _, event in self._held.values():
            self._put(event)
        self._held.clear()
        while not self._queue.empty():
            await self._write(self._queue.get_nowait())

    async def _write(self, event: Json) -> None:
        try:
            await self._client.create_event(event["metadata"]["namespace"], event)
        except KubeError:
            # Not even repeated when unknown: an Event said twice is worse than one not said.
            self.counts.failed += 1
        else:
            self.counts.written += 1

    def _may_say(self, uid: str, reason: str, note: str) -> bool:
        now, limits = self._client.clock.monotonic(), self._limits
        account = self._accounts.pop(uid, None) or _Account(limits.burst, now)
        self._accounts[uid] = account  # last: the longest unmentioned object is forgotten first
        if len(self._accounts) > limits.objects_max:
            self._accounts.popitem(last=False)
        account.tokens = min(limits.burst, account.tokens + (now - account.at) / limits.refill_s)
        account.at = now
        account.said = {key: at for key, at in account.said.items() if now - at < limits.repeat_s}
        if (reason, note) in account.said:
            self.counts.repeated += 1
            return False
        if account.tokens < 1.0:
            self.counts.limited += 1
            return False
        account.tokens -= 1.0
        account.said[reason, note] = now
        return True

    def _event(self, regarding: Regarding, reason: str, note: str, action: str) -> Json:
        now_us = self._client.clock.now_us()
        reference = {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "namespace": regarding.namespace,
            "name": regarding.name,
            "uid": regarding.uid,
            "resourceVersion": regarding.resource_version,
        }
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": self._name(regarding, reason, note, now_us),
                # The server wants Events about cluster-scoped objects in this one.
                "namespace": regarding.namespace or "default",
            },
            "eventTime": _micro_time(now_us),
            "reportingController": self._reporter.controller,
            "reportingInstance": _cut(self._reporter.instance, WORD_BYTES_MAX),
            "action": _cut(action, WORD_BYTES_MAX),
            "reason": _cut(reason, WORD_BYTES_MAX),
            "note": note,
            "regarding": {key: value for key, value in reference.items() if value},
        }

    def _name(self, regarding: Regarding, reason: str, note: str, now_us: int) -> str:
        """Unique, as the same is not said twice at one time; the same in a replay of the run."""
        parts = (self._reporter.instance, regarding.uid, reason, note, now_us)
        digest = hashlib.sha256(repr(parts).encode(errors="replace")).hexdigest()[:16]
        stem = regarding.name[: NAME_CHARS_MAX - len(digest) - 1].rstrip("-.")
        return f"{stem}.{digest}"


def _micro_time(now_us: int) -> str:
    seconds, micros = divmod(now_us, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micros:06d}Z"


def _cut(text: str, bytes_max: int) -> str:
    encoded = text.encode(errors="replace")
    if len(encoded) <= bytes_max:
        return encoded.decode()
    return encoded[: bytes_max - 3].decode(errors="ignore") + "..."
