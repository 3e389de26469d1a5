"""A DispatchPause object: nothing new is dispatched in its scope."""

from __future__ import annotations

from mcad.core.state.records import Struct


class DispatchPause(Struct, frozen=True):
    """The scope is a namespace, a node of a quota tree with all AppWrappers charged at it or below,
    or, without either, the whole cluster. ``reason`` is free text for users."""

    uid: str
    name: str
    namespace: str = ""
    tree: str = ""
    node: str = ""
    reason: str = ""

    @property
    def is_everywhere(self) -> bool:
        """Whether the scope is the whole cluster."""
        return not (self.namespace or self.tree)

    @property
    def scope(self) -> str:
        """The scope in words."""
        if self.namespace:
            return f"namespace {self.namespace}"
        if self.tree:
            return f"quota tree {self.tree}, node {self.node}"
        return "the whole cluster"

    @property
    def title(self) -> str:
        """The paused scope, for messages."""
        return f"Dispatch is paused for {self.scope}"

    @property
    def text(self) -> str:
        """The message of an AppWrapper that waits."""
        because = f": {self.reason}" if self.reason else ""
        return f"{self.title} (DispatchPause {self.name}){because}"
