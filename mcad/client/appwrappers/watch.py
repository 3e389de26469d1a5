"""Watches AppWrappers, and their pods, until each has reached a goal or never will."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from mcad.api.labels import APPWRAPPER_UID, labels_of
from mcad.client.appwrappers.pod_state import phase_of
from mcad.client.appwrappers.quiet_sink import QuietSink
from mcad.client.appwrappers.state import is_held, message, title
from mcad.client.errors import McadError, one_line
from mcad.core.state.reasons import ConditionType
from mcad.kube.client import Client, Selection
from mcad.kube.document import Document
from mcad.kube.errors import KubeError
from mcad.kube.kinds import APPWRAPPERS, PODS
from mcad.kube.reflector import Reflector

Json = dict[str, Any]

UP = ("Running", "Succeeded")


class Verdict(Struct, frozen=True):
    """Whether the goal is reached; if it never will be, ``why``: ``has failed``."""

    reached: bool
    why: str = ""


class Goal(Struct, frozen=True):
    """What is awaited; ``done`` is its word: ``dispatched``.

    ``judge`` gets the number of pods that are up if they are watched (``pods``), and returns None
    as long as neither is certain; ``gone`` is the verdict on an AppWrapper that does not exist any
    more. ``hint`` ends the message of a timeout. ``explains``: the reasons why an AppWrapper waits
    are printed meanwhile.
    """

    done: str
    judge: Callable[[Json, int], Verdict | None]
    gone: Verdict
    hint: str = "see `mcad describe`"
    explains: bool = True
    pods: bool = False


class Wait(Struct, frozen=True):
    """What is awaited and for how long.

    ``report`` is called with each AppWrapper that has reached the goal, ``fail`` with the error for
    each that never will, and ``explain`` with the reasons why one waits, as they change.
    """

    goal: Goal
    report: Callable[[Json], None]
    fail: Callable[[McadError], None]
    explain: Callable[[str], object]
    timeout_s: float | None = None


class Awaited:
    """One AppWrapper; ``end`` is whether it has reached its goal."""

    def __init__(self, obj: Json, wait: Wait) -> None:
        self.obj = obj
        self.end: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._wait = wait
        self._goal = wait.goal
        self._why = ""
        self._last: Json | None = None
        self._up: set[str] = set()  # uids of pods

    def seen(self, obj: Json) -> None:
        """It is like that now."""
        self._last = obj
        if self.end.done():
            return
        verdict = self._goal.judge(obj, len(self._up))
        if verdict is not None:
            self._decide(verdict)
        elif self._goal.explains:
            self.explain("it is on hold" if is_held(obj) else message(obj, ConditionType.BACKOFF))

    def pod_seen(self, uid: str, *, is_up: bool) -> None:
        """One of its pods runs or has succeeded, or does not."""
        before = len(self._up)
        self._up = self._up | {uid} if is_up else self._up - {uid}
        if len(self._up) != before and self._last is not None:
            self.seen(self._last)

    def gone(self) -> None:
        """It does not exist any more."""
        if not self.end.done():
            self._decide(self._goal.gone)

    def explain(self, why: str) -> None:
        """It waits for this; said again only if the reason has changed."""
        if why and why != self._why and not self.end.done():
            self._wait.explain(f"{title(self.obj)} waits: {one_line(why)}")
        self._why = why or self._why

    def _decide(self, verdict: Verdict) -> None:
        if verdict.reached:
            self._wait.report(self.obj)
        else:
            self._wait.fail(McadError(f"{title(self.obj)} {verdict.why}; see `mcad describe`"))
        self.end.set_result(verdict.reached)


def watches(awaited: Sequence[Awaited], goal: Goal) -> Iterator[AppWrapperWatch | PodWatch]:
    """One watch per namespace, of a single AppWrapper where only one is awaited; one of their pods
    if the goal is about pods."""
    by_namespace: dict[str, list[Awaited]] = {}
    for one in awaited:
        by_namespace.setdefault(one.obj["metadata"]["namespace"], []).append(one)
    for namespace, those in by_namespace.items():
        name = those[0].obj["metadata"]["name"]
        fields = f"metadata.name={name}" if len(those) == 1 else ""
        yield AppWrapperWatch(Selection(namespace, field_selector=fields), those)
        if goal.pods:
            uid = f"={those[0].obj['metadata']['uid']}" if len(those) == 1 else ""
            yield PodWatch(Selection(namespace, f"{APPWRAPPER_UID}{uid}"), those)


class AppWrapperWatch(QuietSink):
    """The sink of the reflector of some AppWrappers of one namespace."""

    def __init__(self, selection: Selection, awaited: Sequence[Awaited]) -> None:
        self._selection = selection
        self._awaited = {str(one.obj["metadata"]["uid"]): one for one in awaited}
        self._unseen = set(self._awaited)

    async def run(self, client: Client) -> None:
        """Watch until cancelled."""
        await Reflector(client, APPWRAPPERS, self, Document.json, self._selection).run()

    def upserted(self, obj: Json) -> None:
        uid = obj["metadata"]["uid"]
        if uid in self._awaited:
            self._unseen.discard(uid)
            self._awaited[uid].seen(obj)

    def gone(self, uid: str, namespace: str, name: str, last: Json | None) -> None:  # noqa: ARG002
        if uid in self._awaited:
            self._awaited[uid].gone()

    def synced(self, *, relist: bool) -> None:  # noqa: ARG002
        for uid in self._unseen:
            self._awaited[uid].gone()

    def failing(self, error: KubeError) -> None:
        for one in self._awaited.values():
            one.explain(f"no news from the API server: {error}")


class PodWatch(QuietSink):
    """The sink of the reflector of their pods: status counts them at most every 30 s in v1beta1."""

    def __init__(self, selection: Selection, awaited: Sequence[Awaited]) -> None:
        self._selection = selection
        self._awaited = {str(one.obj["metadata"]["uid"]): one for one in awaited}
        self._owners: dict[str, Awaited] = {}  # by uid of a pod

    async def run(self, client: Client) -> None:
        """Watch until cancelled."""
        await Reflector(client, PODS, self, Document.json, self._selection).run()

    def upserted(self, obj: Json) -> None:
        owner = self._awaited.get(str(labels_of(obj).get(APPWRAPPER_UID)))
        if owner is not None:
            uid, leaves = str(obj["metadata"]["uid"]), "deletionTimestamp" in obj["metadata"]
            self._owners[uid] = owner
            owner.pod_seen(uid, is_up=phase_of(obj) in UP and not leaves)

    def gone(self, uid: str, namespace: str, name: str, last: Json | None) -> None:  # noqa: ARG002
        if uid in self._owners:
            self._owners.pop(uid).pod_seen(uid, is_up=False)

    def failing(self, error: KubeError) -> None:
        """Ignored: without them the counts of status remain."""
