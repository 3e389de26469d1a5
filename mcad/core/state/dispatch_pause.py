"""A DispatchPause object: nothing new is dispatched in its scope."""

from __future__ import annotations

from mcad.core.state.records import Struct


class DispatchPause(Struct, frozen=True):
    """The scope is a namespace, what is charged at a node of a quota tree or below it, or, without
    either, the whole cluster. ``reason`` is free text for users."""

    uid: str
    name: str
    namespace: str = ""
    tree: str = ""
    node: str = ""
    reason: str = ""

    @property
    def is_everywhere(self) -> bool:
        """Whether it concerns the whole cluster."""
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
        """What is paused."""
        return f"Dispatch is paused for {self.scope}"

    @property
    def text(self) -> str:
        """What an AppWrapper waits for."""
        because = f": {self.reason}" if self.reason else ""
        return f"{self.title} (DispatchPause {self.name}){because}"
