"""Translates what the API server reports to core events: AppWrappers, nodes, pods, wrapped objects.

It keeps what is needed to attribute an object (owners, manifests), and decides nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, Self

from msgspec import Struct
from msgspec.structs import astuple, replace

from mcad.api import projections
from mcad.api.appwrapper import Parsed, unread
from mcad.api.catalog import Resource
from mcad.api.children import child_item, read_child
from mcad.api.config import Config
from mcad.api.owner import Owner, controller_of
from mcad.api.pods import read_node, read_pod
from mcad.api.scale_up.objects import is_placeholder
from mcad.api.status import FORMER, STATUS
from mcad.api.wire import fields_of_others
from mcad.controller.early_objects import EarlyObjects
from mcad.controller.mirror import Manifests, Mirror, Reflection, spec_mark, status_mark
from mcad.controller.owner_chains import Missing, Owners
from mcad.controller.served_kinds import catalog_entry
from mcad.core.events import (
    AppWrapperGone,
    AppWrapperSeen,
    ChildGone,
    ChildSeen,
    Event,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
)
from mcad.core.state.model import Child, Node, Pod, Workload
from mcad.core.state.waiting_reason import WaitingReason
from mcad.kube.document import Document
from mcad.kube.errors import BadAnswer
from mcad.kube.kinds import PODS
from mcad.kube.versions import is_older

Json = dict[str, Any]

CreationOrder = tuple[str, bool, int, str]


class SlimPod(Struct, frozen=True):
    """A slimmed pod. Its object is kept only if an AppWrapper is its direct controller."""

    pod: Pod
    controller: Owner | None
    obj: Json | None


def slim_pod(document: Document) -> SlimPod:
    """What is needed of a pod: 50,000 pods must not be kept as dicts."""
    obj = document.pick(projections.POD)
    controller = controller_of(obj)
    wrapped = controller is not None and controller.is_appwrapper
    return SlimPod(read_pod(obj), controller, document.json() if wrapped else None)


class SlimNode(Struct, frozen=True):
    """A node as the core keeps it, and its uid, which the core does not need."""

    uid: str
    node: Node


class Reading(Struct, frozen=True):
    """An AppWrapper that was read before the core may know it (ADR 55), without the defaults of its
    pods, which may change until then."""

    uid: str
    version: str
    spec_mark: bytes
    status_mark: bytes
    workload: Workload
    manifests: Manifests
    others: Json
    error: Exception | None = None


def slim_node(document: Document) -> Json:
    """What is needed of a node."""
    return document.pick(projections.NODE)


def _as_it_is(work: Workload, _: Manifests) -> Workload:
    """Without defaults."""
    return work


class Readers(Struct, frozen=True):
    """Readers of objects whose meaning depends on the configuration or the served kinds.

    ``completed`` adds the defaults of its pods to an AppWrapper.
    """

    appwrapper: Callable[[Json], Parsed]
    node: Callable[[Json], Node] = read_node
    completed: Callable[[Workload, Manifests], Workload] = _as_it_is

    @classmethod
    def of(
        cls,
        config: Config,
        appwrapper: Callable[[Json], Parsed],
        completed: Callable[[Workload, Manifests], Workload] = _as_it_is,
    ) -> Self:
        """The readers for this configuration. ``appwrapper`` knows the present catalogue."""
        return cls(appwrapper, partial(read_node, evictions=config.autopilot.evictions), completed)


class Placeholders(Protocol):
    """Takes pods that keep places of AppWrappers for which nodes are added."""

    def seen(self, obj: Json) -> None:
        """Take a new or changed placeholder."""
        ...

    def gone(self, object_uid: str) -> None:
        """A pod was deleted; it may be any pod."""
        ...


class EventTranslator:
    """Translates observations and feeds them to the core.

    ``ask`` is called with an owner whose controller is unknown. ``judged`` returns, for an
    AppWrapper that was fed, the workload with the items and pod sets that its attempt is judged by.
    ``errored`` is called with an error of ours about one AppWrapper (uid).
    """

    def __init__(
        self,
        mirror: Mirror,
        read: Readers,
        feed: Callable[[Event], None],
        ask: Callable[[Pod, Owner], None],
        judged: Callable[[str], Workload | None],
    ) -> None:
        self._read = read
        self._mirror = mirror
        self._feed = feed
        self._ask = ask
        self._judged = judged
        self.errored: Callable[[str, Exception], None] = _raise
        self.placeholders: Placeholders | None = None
        self._owners = Owners()
        self._early = EarlyObjects()
        self._nodes: dict[str, str] = {}

    # -- AppWrappers -------------------------------------------------------------------------

    def is_news(self, document: Document) -> bool:
        """Whether an AppWrapper must be looked at (P13).

        Most of what comes is an echo of our own writes, and that shows without its spec.
        """
        seat = self._mirror.get(document.identity.uid)
        if seat is None:
            return True
        if seat.precedes(document.identity.version):
            return False
        try:
            obj = document.pick(projections.APPWRAPPER)
        except BadAnswer:
            return True
        return not self._is_echo(seat, obj, spec_mark(obj), status_mark(obj.get("status")))

    @staticmethod
    def _is_echo(seat: Reflection, obj: Json, spec: bytes, status: bytes) -> bool:
        """Whether only the version is new; if so, remember the version and the status."""
        if not seat.shows(spec, status):
            return False
        seat.reached(obj["metadata"]["resourceVersion"])
        seat.status_mark = status
        return True

    def appwrapper_seen(self, obj: Json, *, listed: bool = False) -> None:
        """Take an AppWrapper as it is; our own echoes and what precedes them are skipped (P13)."""
        uid, version = obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
        seat = self._mirror.get(uid)
        if seat is not None and seat.precedes(version):
            return
        spec, status = spec_mark(obj), status_mark(obj.get("status"))
        if seat is not None and self._is_echo(seat, obj, spec, status):
            return
        rewound = seat is not None and is_older(version, seat.version)
        self._take(self._reading(obj, spec, status), listed=listed, rewound=rewound)

    def read(self, obj: Json) -> Reading:
        """Read an AppWrapper that is fed later."""
        return self._reading(obj, spec_mark(obj), status_mark(obj.get("status")))

    def _reading(self, obj: Json, spec: bytes, status: bytes) -> Reading:
        metadata, error = obj["metadata"], None
        try:
            parsed = self._read.appwrapper(obj)
        except Exception as raised:  # noqa: BLE001 - it holds this AppWrapper, not the others
            parsed, error = unread(obj), raised
        manifests = Manifests.of(parsed.manifests)
        uid, version = metadata["uid"], metadata["resourceVersion"]
        others = fields_of_others(obj.get("status"), STATUS | FORMER)
        return Reading(uid, version, spec, status, parsed.workload, manifests, others, error)

    def appwrapper_read(self, reading: Reading) -> None:
        """Take an AppWrapper of the first list that was read before."""
        self._take(reading, listed=True, rewound=False)

    def _take(self, reading: Reading, *, listed: bool, rewound: bool) -> None:
        uid, version, spec, status, work, manifests, others, error = astuple(reading)
        if error is None:
            work = self._read.completed(work, manifests)
        seat = Reflection(
            work, manifests, spec, others, version=version, status_mark=status, floor=version
        )
        self._mirror.put(uid, seat)
        self._feed(AppWrapperSeen(work, listed, rewound))
        if error is not None:
            self.errored(uid, error)
        for resource, child in self._early.take(uid):
            self.object_seen(resource, child)

    def appwrapper_gone(self, uid: str) -> None:
        """An AppWrapper was deleted."""
        self._mirror.drop(uid)
        self._feed(AppWrapperGone(uid))

    def without_kind(self) -> list[Reflection]:
        """The AppWrappers that name a kind which was not installed when they were read."""
        return [seat for seat in self._mirror.all() if _not_installed(seat)]

    # -- nodes -------------------------------------------------------------------------------

    def read_node(self, obj: Json) -> SlimNode:
        """Read a node that is fed later."""
        return SlimNode(obj["metadata"]["uid"], self._read.node(obj))

    def node_seen(self, sighting: SlimNode) -> None:
        """Take a node as it is."""
        self._nodes[sighting.uid] = sighting.node.name
        self._feed(NodeSeen(sighting.node))

    def node_gone(self, uid: str) -> None:
        """A node was deleted; a successor of the same name may already exist."""
        name = self._nodes.pop(uid, None)
        if name is not None and name not in self._nodes.values():
            self._feed(NodeGone(name))

    # -- pods --------------------------------------------------------------------------------

    def pod_seen(self, sighting: SlimPod) -> None:
        """Take a pod as it is. A pod that is itself an item is first reported as an item (C2). A
        placeholder uses no room: its place is reserved for the AppWrapper that asked."""
        if self._is_placeholder(sighting):
            return
        if sighting.obj is not None:
            self.object_seen(catalog_entry(PODS), sighting.obj)
        self._attribute(sighting.pod, sighting.controller)

    def pod_gone(self, uid: str) -> None:
        """A pod was deleted."""
        if self.placeholders is not None:
            self.placeholders.gone(uid)
        self._owners.forget_pod(uid)
        self._forget_object(uid)
        self._feed(PodGone(uid))

    def _is_placeholder(self, sighting: SlimPod) -> bool:
        found, obj = self.placeholders, sighting.obj
        if found is None or obj is None or not is_placeholder(obj):
            return False
        found.seen(obj)
        return True

    def _attribute(self, pod: Pod, controller: Owner | None) -> None:
        end = self._owners.appwrapper(controller)
        if isinstance(end, Missing):
            self._wait_for_link(end.owner, pod, controller)
        elif end.appwrapper:
            self._owners.attributed(pod.uid, controller)
            pod = replace(pod, workload=end.appwrapper, root=end.root or pod.uid)
        self._feed(PodSeen(pod))

    def _wait_for_link(self, missing: Owner, pod: Pod, controller: Owner | None) -> None:
        """Wait for the missing owner, if the pod has our label: the cluster is full of others."""
        if not pod.attempt or controller is None:
            return
        if self._owners.wait(missing, pod, controller):
            self._ask(pod, missing)

    def owner_found(self, uid: str, controller: Owner | None, *, watched: bool = True) -> None:
        """The controller of an owner is known now: attribute the pods that waited for it."""
        for pod, own in self._owners.learn(uid, controller, watched=watched):
            self._attribute(pod, own)

    def is_owner_awaited(self, uid: str) -> bool:
        """Whether a pod still waits for this owner."""
        return self._owners.is_awaited(uid)

    # -- wrapped objects ---------------------------------------------------------------------

    def object_seen(self, resource: Resource, obj: Json) -> None:
        """Take an object with our labels: an item, or an object between an item and its pods."""
        uid, controller = obj["metadata"]["uid"], controller_of(obj)
        self.owner_found(uid, controller)
        if controller is None or not controller.is_appwrapper:
            self._feed(ChildGone(uid))  # orphaned by cascade=orphan, or never an item
            return
        seat = self._mirror.get(controller.uid)
        if seat is None:
            self._early.put(controller.uid, resource, obj)
        try:
            child = self._child(resource, obj, controller.uid)
        except Exception as error:  # noqa: BLE001 - it holds this AppWrapper, not the others
            self.errored(controller.uid, error)
        else:
            self._feed(ChildSeen(child))

    def _child(self, resource: Resource, obj: Json, uid: str) -> Child:
        """Read it by the pod sets that its attempt is judged by: the spec may be edited (P8)."""
        work, item = self._judged(uid), child_item(obj)
        if work is None:
            return read_child(obj, resource)
        return read_child(obj, resource, [one for one in work.sets if one.item == item])

    def object_gone(self, uid: str) -> None:
        """An object with our labels was deleted."""
        self._forget_object(uid)

    def _forget_object(self, uid: str) -> None:
        self._owners.forget(uid)
        self._early.drop(uid)
        self._feed(ChildGone(uid))


def creation_order(obj: Json) -> CreationOrder:
    """Sort key of the first list: AppWrappers are fed in the order of their creation (design
    section 4).

    Within one second, AppWrappers with a first-seen time come first: a status write has raised
    their version. The creation second is compared before that, because the first status of an
    AppWrapper that was seen may be lost.
    """
    metadata, status = obj["metadata"], obj.get("status")
    unseen = not (isinstance(status, dict) and status.get("controllerfirsttimestamp"))
    version = metadata["resourceVersion"]
    number = int(version) if version.isdecimal() else 0
    return (metadata.get("creationTimestamp", ""), unseen, number, metadata["uid"])


def _not_installed(seat: Reflection) -> bool:
    problem = seat.workload.problem
    return problem is not None and problem.kind is WaitingReason.NOT_INSTALLED


def _raise(_uid: str, error: Exception) -> None:
    raise error
