"""Finds the AppWrapper of a pod by the chain of controller owner references (protocol C3).

Items and intermediate owners (the ReplicaSet of a Deployment) are known from label-selected
watches. If a link is missing, a pod with our uid label waits for the watch, and after a moment the
link is read. Labels alone attribute no pod.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from mcad.api.owner import Owner
from mcad.core.state.model import Pod

CHAIN_MAX = 8  # a Deployment has 2 links, a RayJob 3; more is a loop


class Missing(Struct, frozen=True):
    """A link of a chain that is not known yet."""

    owner: Owner


class End(NamedTuple):
    """The end of a chain: the uids of the AppWrapper and of the object next to it.

    The second is "" if that object is the pod itself.
    """

    appwrapper: str
    root: str


FOREIGN = End("", "")


class Owners:
    """The known links, object uid -> controller, and pods that wait for a link.

    The watch that reports an object also reports its deletion. A link that was read instead is kept
    as long as the chain of an existing pod uses it (``_asked``: link -> these pods).
    """

    def __init__(self) -> None:
        self._controllers: dict[str, Owner | None] = {}
        self._asked: dict[str, set[str]] = {}
        self._waiting: dict[str, dict[str, tuple[Pod, Owner]]] = {}
        # By pod, because pods vanish all the time and most of them mean nothing here.
        self._leads_over: dict[str, tuple[str, ...]] = {}
        self._waits_for: dict[str, str] = {}

    # -- links -----------------------------------------------------------------------------------

    def learn(
        self, uid: str, controller: Owner | None, *, watched: bool = True
    ) -> list[tuple[Pod, Owner]]:
        """Store a link; returns the pods that waited for it, with their controllers."""
        waited = self._waiting.pop(uid, {})
        for pod_uid in waited:
            del self._waits_for[pod_uid]
        if watched:
            self._asked.pop(uid, None)
        elif waited:
            self._asked.setdefault(uid, set())
        if watched or waited:
            self._controllers[uid] = controller
        return list(waited.values())

    def forget(self, uid: str) -> None:
        """The object no longer exists."""
        self._controllers.pop(uid, None)
        self._asked.pop(uid, None)

    def appwrapper(self, controller: Owner | None) -> End | Missing:
        """The AppWrapper at the end of the chain, ``FOREIGN`` if there is none."""
        root = ""
        for owner in self._chain(controller):
            if owner.is_appwrapper:
                return End(owner.uid, root)
            if owner.uid not in self._controllers:
                return Missing(owner)
            root = owner.uid
        return FOREIGN

    def _chain(self, controller: Owner | None) -> Iterator[Owner]:
        for _ in range(CHAIN_MAX):
            if controller is None:
                return
            yield controller
            controller = self._controllers.get(controller.uid)

    # -- pods ------------------------------------------------------------------------------------

    def wait(self, missing: Owner, pod: Pod, controller: Owner) -> bool:
        """Let a pod wait for a link; True for the first pod that waits for it."""
        self.forget_pod(pod.uid)
        first = missing.uid not in self._waiting
        self._waiting.setdefault(missing.uid, {})[pod.uid] = (pod, controller)
        self._waits_for[pod.uid] = missing.uid
        self._rely(pod.uid, controller)
        return first

    def attributed(self, pod_uid: str, controller: Owner | None) -> None:
        """The chain of a pod is complete."""
        self.forget_pod(pod_uid)
        self._rely(pod_uid, controller)

    def _rely(self, pod_uid: str, controller: Owner | None) -> None:
        links = tuple(one.uid for one in self._chain(controller) if one.uid in self._asked)
        for link in links:
            self._asked[link].add(pod_uid)
        if links:
            self._leads_over[pod_uid] = links

    def forget_pod(self, pod_uid: str) -> None:
        """The pod no longer exists."""
        awaited = self._waits_for.pop(pod_uid, "")
        if awaited:
            del self._waiting[awaited][pod_uid]
            if not self._waiting[awaited]:
                del self._waiting[awaited]
        for link in self._leads_over.pop(pod_uid, ()):
            pods = self._asked.get(link)
            if pods is not None:
                pods.discard(pod_uid)
                if not pods:
                    self.forget(link)

    def is_awaited(self, uid: str) -> bool:
        """Whether a pod waits for this link."""
        return uid in self._waiting
