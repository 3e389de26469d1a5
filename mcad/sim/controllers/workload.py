"""What all controllers that own pods or other objects share."""

from __future__ import annotations

from collections.abc import Callable

from mcad.kube.types import Json
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.claims import claim
from mcad.sim.controllers.events import Recorder
from mcad.sim.controllers.index import OwnedIndex, SelectorIndex
from mcad.sim.controllers.pods import controller_of, labels_of, next_available_s
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key
from mcad.sim.writes import Write


class Workload(Controller):
    """A controller of one kind of owners, with the index of what they own."""

    def __init__(self, registry: Registry, kind: Kind, owned: OwnedIndex, component: str) -> None:
        """``component`` is the source of its Events."""
        super().__init__(registry)
        self.kind = kind
        self.owned = owned
        self.recorder = Recorder(registry, component)
        self.selectors = SelectorIndex()

    def start(self) -> None:
        self.owned.start()
        self.watch(self.kind, self.on_owner)
        self.owned.listen(self.kind.kind, self.on_owned)
        self.owned.listen_all(self.on_any)

    def selector_of(self, owner: Json) -> Json | None:
        """Its LabelSelector; ReplicationControllers have another form."""
        selector: Json | None = (owner.get("spec") or {}).get("selector")
        return selector

    def on_owner(self, change: Change) -> None:
        if change.type == "DELETED":
            self.selectors.drop(change.key)
        elif change.previous is None or change.previous.get("spec") != change.obj.get("spec"):
            self.selectors.put(change.key, self.selector_of(change.obj))
        self.enqueue(change.key)

    def on_owned(self, _change: Change, owner: Key) -> None:
        """Something was written that says it belongs to this owner."""
        self.enqueue(owner)

    def on_any(self, change: Change) -> None:
        """Something was written: if it has no owner, a controller may want to adopt it."""
        if change.type == "DELETED" or controller_of(change.obj) is not None:
            return
        before = change.previous
        was_orphan = before is not None and controller_of(before) is None
        if before is not None and was_orphan and labels_of(before) == labels_of(change.obj):
            return  # its owner was notified
        for key in self.selectors.matching(change.key[0], labels_of(change.obj)):
            self.enqueue(key)

    def claim(
        self, owner: Json, *, only: Callable[[Json], bool] | None = None, finalizer: str = ""
    ) -> list[Json]:
        """What belongs to ``owner`` (of those that ``only`` lets through); may raise Failure."""
        selector = self.selector_of(owner)
        return claim(self.owned, owner, selector, only=only, finalizer=finalizer)

    # -- pods ----------------------------------------------------------------------------------

    def manage(
        self, owner: Json, change: Callable[[], None], report: Callable[[Failure | None], None]
    ) -> None:
        """Create and delete pods by ``change``, then write the status by ``report``; reconcile
        again when the next pod becomes available. Raises the Failure of ``change``."""
        trouble: Failure | None = None
        try:
            change()
        except Failure as failure:
            trouble = failure
        report(trouble)
        if trouble is not None:
            raise trouble
        pods = self.owned.owned(owner["metadata"]["uid"])
        wait_s = next_available_s(pods, min_ready_s(owner), self.registry.clock.now_us())
        if wait_s is not None:
            self.enqueue_after(key_of(owner), wait_s)

    def create_pod(self, owner: Json, pod: Json) -> Json | None:
        """The pod, or None in a namespace that is going; raises Failure after saying why."""
        try:
            created = self.registry.create(self.owned.kind, owner["metadata"]["namespace"], pod)
        except Failure as failure:
            if is_namespace_going(failure):
                return None
            self.recorder.warning(owner, "FailedCreate", f"Error creating: {failure.message}")
            raise
        name = created["metadata"]["name"]
        self.recorder.normal(owner, "SuccessfulCreate", f"Created pod: {name}")
        return created

    def delete_pod(self, owner: Json, pod: Json) -> None:
        """Begin its deletion, and say so."""
        name = pod["metadata"]["name"]
        self.registry.delete(self.owned.kind, key_of(pod), Deletion(uid=pod["metadata"]["uid"]))
        self.recorder.normal(owner, "SuccessfulDelete", f"Deleted pod: {name}")

    # -- status --------------------------------------------------------------------------------

    def write_status(self, owner: Json, status: Json) -> Json:
        """The owner with that status; an equal one is not written again."""
        return write_status(self.registry, self.kind, owner, status)


def write_status(registry: Registry, kind: Kind, obj: Json, status: Json) -> Json:
    """The object with that status; an equal one is not written again. Raises Failure."""
    if obj.get("status") == status:
        return obj
    how = Write(trusted=True, subresource="status")
    return registry.patch(kind, key_of(obj), lambda live: live | {"status": status}, how)


def is_namespace_going(failure: Failure) -> bool:
    """Whether a creation was refused because its namespace is being deleted."""
    causes = (failure.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def min_ready_s(owner: Json) -> int:
    """``spec.minReadySeconds``, after which a ready pod counts as available."""
    seconds: int = owner["spec"].get("minReadySeconds", 0)
    return seconds


def compact(status: Json, *always: str) -> Json:
    """Without the zeros and empty lists that Go leaves out (omitempty), but for ``always``."""
    return {name: value for name, value in status.items() if value or name in always}
