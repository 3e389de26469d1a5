"""To which AppWrapper a pod belongs: the chain of controller owner references by uid (protocol C3).

Children and intermediate owners (a Deployment's ReplicaSet) are known from the label-selected
watches. Where a link is missing, a pod that carries our uid label waits for the watch, and after a
moment the missing link is asked for. Labels alone never attribute anything.
"""

from dataclasses import dataclass

from mcad.api.owner import Owner
from mcad.core.model import Pod

CHAIN_MAX = 8  # a Deployment has 2 links, a RayJob 3; more is a loop


@dataclass(frozen=True, slots=True)
class Missing:
    """A link of a chain that is not known yet."""

    owner: Owner


class Owners:
    """The known links: object uid -> its controller, and pods that wait for a link."""

    def __init__(self) -> None:
        self._controllers: dict[str, Owner | None] = {}
        self._waiting: dict[str, dict[str, tuple[Pod, Owner]]] = {}

    def learn(self, uid: str, controller: Owner | None) -> list[tuple[Pod, Owner]]:
        """Remember a link; returns the pods that waited for it with their own controllers."""
        self._controllers[uid] = controller
        return list(self._waiting.pop(uid, {}).values())

    def forget(self, uid: str) -> None:
        """The object no longer exists."""
        self._controllers.pop(uid, None)

    def appwrapper(self, controller: Owner | None) -> str | Missing:
        """The uid of the AppWrapper at the end of the chain, "" if it ends elsewhere."""
        for _ in range(CHAIN_MAX):
            if controller is None:
                return ""
            if controller.is_appwrapper:
                return controller.uid
            if controller.uid not in self._controllers:
                return Missing(controller)
            controller = self._controllers[controller.uid]
        return ""

    def wait(self, missing: Owner, pod: Pod, controller: Owner) -> bool:
        """Let a pod wait for a link; True if it is the first that waits for it."""
        waiting = self._waiting.setdefault(missing.uid, {})
        first = not waiting
        waiting[pod.uid] = (pod, controller)
        return first

    def stop_waiting(self, pod_uid: str) -> None:
        """The pod no longer exists."""
        for waiting in self._waiting.values():
            waiting.pop(pod_uid, None)

    def is_awaited(self, uid: str) -> bool:
        """Whether somebody still waits for this link."""
        return bool(self._waiting.get(uid))
