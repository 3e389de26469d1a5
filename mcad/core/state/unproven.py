"""Pods that name an AppWrapper, and whose chain of controllers does not prove it."""

from __future__ import annotations

from collections.abc import Iterable

from mcad.core.state.model import Pod


class Unproven:
    """They are judged again when the object at the root of their chain becomes known (C3)."""

    def __init__(self) -> None:
        self._by_root: dict[str, dict[str, Pod]] = {}
        self._root_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._root_of)

    def put(self, pod: Pod) -> None:
        """Keep the pod as it is now, with the AppWrapper that it names."""
        self.drop(pod.uid)
        self._by_root.setdefault(pod.root, {})[pod.uid] = pod
        self._root_of[pod.uid] = pod.root

    def drop(self, uid: str) -> None:
        """The pod is gone, or its chain is proven."""
        root = self._root_of.pop(uid, None)
        if root is None:
            return
        pods = self._by_root[root]
        del pods[uid]
        if not pods:
            del self._by_root[root]

    def below(self, root: str) -> Iterable[Pod]:
        """Those with a chain that goes over this object."""
        return tuple(self._by_root.get(root, {}).values())
