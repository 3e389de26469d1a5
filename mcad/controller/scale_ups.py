"""Asks an autoscaler for nodes: creates the objects of scale-up requests.

Names are derived from the AppWrapper and the attempt, so that a creation is repeated after a crash
at any write.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from mcad.api import labels
from mcad.api.scale_up.answers import asked_by
from mcad.api.scale_up.objects import MAX_POD_SETS, Ask, Made, made_for
from mcad.api.scale_up.settings import GROUP, PLURALS, ScaleUpSettings, Via
from mcad.api.scale_up.templates import Wanted, pod_template, wanted
from mcad.api.wire import plural
from mcad.controller.request_failures import answer_of
from mcad.controller.scale_up_book import Book
from mcad.controller.scale_up_events import refusal
from mcad.controller.scale_up_removal import Removal
from mcad.core.commands import RequestScaleUp, WithdrawScaleUp
from mcad.core.events import ScaleUpRefused, ScaleUpServed
from mcad.core.state.answer import Answer
from mcad.kube.errors import ApiError, KubeError, OutcomeUnknown
from mcad.kube.kinds import POD_TEMPLATES, PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from mcad.controller.mirror import Mirror
    from mcad.controller.write_lanes import Job
    from mcad.core.events import Event
    from mcad.core.state.model import Workload
    from mcad.core.state.scale_up import Key
    from mcad.kube.client import Client
    from mcad.kube.resource import Resource

Json = dict[str, Any]

POD = (PODS.group, PODS.plural)
_VIA = {(GROUP, plural_): via for via, plural_ in PLURALS.items()} | {POD: Via.PLACEHOLDER_PODS}

LOOK_S = 10.0
"""Between two looks at the Events about a buffer or placeholder pods."""


class ScaleUps:
    """The requests of one controller."""

    def __init__(  # noqa: PLR0913 - each is a part of the controller
        self,
        client: Client,
        mirror: Mirror,
        settings: ScaleUpSettings,
        served: Callable[[tuple[str, str]], Resource | None],
        *,
        feed: Callable[[Event], None],
        spawn: Callable[[Coroutine[Any, Any, Any]], object],
        namespaces: Sequence[str] = (),
        judged: Callable[[str], Workload | None],
    ) -> None:
        """``client`` is the one that may write. ``served`` returns a kind in the version that
        discovery prefers, ``judged`` an AppWrapper as the core counts it."""
        self._client = client
        self._mirror = mirror
        self._settings = settings
        self._served = served
        self._feed = feed
        self._spawn = spawn
        self._judged = judged
        self._looked_at: set[Key] = set()
        self._is_served = True
        self.book = Book(mirror, client.clock, feed, spawn)
        self._removal = Removal(
            client,
            self.book,
            resources=self._resources,
            spawn=spawn,
            namespaces=namespaces,
        )

    def tell_served(self) -> None:
        """Tell the core whether the cluster serves a kind by which to ask, if that has changed."""
        if self._is_served != (is_served := self._way() is not None):
            self._is_served = is_served
            self._feed(ScaleUpServed(is_served))

    # -- what the watches show -----------------------------------------------------------------

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """(group, plural) of the kinds to be watched, if they are served."""
        return self._settings.kinds

    @property
    def has_placeholders(self) -> bool:
        """Whether pods are created in the place of others."""
        return self._settings.via is Via.PLACEHOLDER_PODS

    def named_by_pods(self, uid: str, attempt: int, item: int) -> dict[int, str]:
        """The ProvisioningRequests whose nodes the pods of an item use, by index of the pod set."""
        objects = self.book.objects((uid, attempt))
        exist = {one.name for one in objects}
        seat, work = self._mirror.get(uid), self._judged(uid)
        if not exist or seat is None or work is None:
            return {}
        manifest, ask = json.loads(seat.manifests.text(item)), Ask(work, attempt, (), 0)
        sets = (one for one in work.sets if one.item == item)
        templates = ((one.index, Wanted(pod_template(work, one, manifest), 1)) for one in sets)
        names = ((index, ask.of_placement(one)) for index, one in templates)
        return {index: name for index, name in names if name in exist}

    def seen(self, obj: Json, pair: tuple[str, str] = POD) -> None:
        """Take a new or changed object of this kind."""
        self.book.seen(_VIA[pair], obj)
        if _VIA[pair] is not Via.PROVISIONING_REQUEST:
            self._look_for_refusals(asked_by(obj))

    def _look_for_refusals(self, key: Key) -> None:
        """Read from time to time what the autoscaler says about a request in Events only."""
        if key in self.book and key not in self._looked_at:
            self._looked_at.add(key)
            self._spawn(self._read_refusals(key))

    async def _read_refusals(self, key: Key) -> None:
        while key in self.book:
            await self._client.clock.sleep(LOOK_S)
            for one in self.book.objects(key)[:1]:  # all are in the namespace of the AppWrapper
                if words := await refusal(self._client, one.namespace, self.book.uids(key)):
                    self.book.refuse(key, words)
        self._looked_at.discard(key)

    def gone(self, object_uid: str) -> None:
        """An object was deleted, by whatever user. What belongs to it goes as well."""
        key = self.book.gone(object_uid)
        if key is not None:
            self._removal.clear(key)

    def absent(self, pair: tuple[str, str]) -> None:
        """A kind is not installed any more."""
        for key in self.book.forget_kind(_VIA[pair]):
            self._removal.clear(key)

    def job(self, command: RequestScaleUp | WithdrawScaleUp) -> Job | None:
        """The job that executes a command; None if there is nothing to do."""
        if isinstance(command, RequestScaleUp):
            return self._request(command)
        return self._removal.begin((command.uid, command.attempt))

    # -- creation ------------------------------------------------------------------------------

    def _request(self, command: RequestScaleUp) -> Job | None:
        """The job that creates a request; None if there is nothing to create."""
        key = command.uid, command.attempt
        seat, work = self._mirror.get(command.uid), self._judged(command.uid)
        if seat is None or work is None:
            return None
        if self._removal.is_under_way(key):
            self._refuse(key, 409, "Conflict", "an earlier request is being deleted")
            return None
        found = self._way()
        if found is None:
            self._refuse(key, 404, "NotServed", self._not_served())
            return None
        via, resource = found
        pods = wanted(work, seat.manifests.texts(), command.pods)
        most = max(Counter(one.placement for one in pods).values(), default=0)
        if via is Via.PROVISIONING_REQUEST and most > MAX_POD_SETS:
            words = f"its pods are of {plural(most, 'kind')}, and a ProvisioningRequest takes "
            words += f"{MAX_POD_SETS}; an administrator can set scaleUp.via to CapacityBuffer"
            self._refuse(key, 422, "TooManyPodSets", words)
            return None
        ask = Ask(work, command.attempt, tuple(pods), round(self._settings.timeout))
        made = made_for(via, resource.version, ask)
        return partial(self._create, key, via, resource, made)

    def _way(self) -> tuple[Via, Resource] | None:
        """How the autoscaler is asked, None if the cluster does not serve the kind for it."""
        if self.has_placeholders:
            return Via.PLACEHOLDER_PODS, PODS
        for via, plural_ in PLURALS.items():
            pair = GROUP, plural_
            resource = self._served(pair) if pair in self.kinds else None
            if resource is not None:
                return via, resource
        return None

    def _not_served(self) -> str:
        names = " or ".join(name for _, name in self.kinds)
        words = f"the cluster does not serve {names} of {GROUP}"
        return f"{words}; install them with the autoscaler, or set scaleUp.via"

    def _refuse(self, key: Key, status: int, reason: str, words: str) -> None:
        self._feed(ScaleUpRefused(*key, Answer(status, reason, words)))

    async def _create(self, key: Key, via: Via, resource: Resource, made: Made) -> None:
        async with self._removal.turn(key):
            self.book.silent.add(key)
            try:
                for body in made.templates:
                    await self._ensure(POD_TEMPLATES, body)
                for body in made.requests:
                    self.book.seen(via, await self._ensure(resource, body))
            except KubeError as error:
                if isinstance(error, OutcomeUnknown):
                    self._removal.note_unanswered(key)
                self._feed(ScaleUpRefused(*key, answer_of(error)))
                return  # what was made stays silent until the rest is made, or all is withdrawn
            self.book.silent.discard(key)
            self.book.report(key)
            if via is not Via.PROVISIONING_REQUEST:
                self._look_for_refusals(key)

    async def _ensure(self, resource: Resource, body: Json) -> Json:
        """Create an object unless it exists. One of another content is of an AppWrapper that was
        edited since: it is deleted, and the request refused until then."""
        metadata = body["metadata"]
        where = metadata["namespace"], metadata["name"]
        try:
            return await self._client.create(resource, where[0], body)
        except ApiError as error:
            if not error.already_exists:
                raise
        live = await self._client.get(resource, *where)
        title = f"{resource.kind} {where[0]}/{where[1]}"
        if asked_by(live) != asked_by(body):
            words = f"{title} exists and was not made by the dispatcher; delete it"
            raise ApiError(422, "NameTaken", words)
        content = labels.labels_of(live).get(labels.SCALE_UP_CONTENT)
        is_leaving = "deletionTimestamp" in live["metadata"]
        if not is_leaving and content == labels.labels_of(body)[labels.SCALE_UP_CONTENT]:
            return live
        if not is_leaving:
            await self._removal.delete(resource, live)
        raise ApiError(409, "Conflict", f"{title} of an earlier request is being deleted")

    def _resources(self) -> Iterator[Resource]:
        if self.has_placeholders:
            yield PODS
            return
        yield from (one for one in map(self._served, self.kinds) if one is not None)
        yield POD_TEMPLATES

    async def sweep(self) -> None:
        """Delete PodTemplates without a request: an earlier leader ended between the two."""
        if not self.has_placeholders:
            await self._removal.sweep()
