"""What is stored in the cluster, for when the dispatcher cannot be asked: it is shown as written.

Positions, demands, start times and capacity are the dispatcher's to say: they are unknown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from msgspec import Struct

from mcad.api.labels import TREE
from mcad.api.questions import Question
from mcad.api.wire import as_int, as_list, as_map, as_text
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.appwrappers.state import DISPATCHED, condition, end, is_held, message, state
from mcad.client.errors import UnavailableError, explain_list
from mcad.client.figures.polled import ListPage, PolledSource
from mcad.core.state.quota_records import BOOKS
from mcad.core.state.reasons import ConditionType, State
from mcad.kube.client import Client, Selection
from mcad.kube.errors import KubeError
from mcad.kube.kinds import APPWRAPPERS, QUOTA_SUBTREES
from mcad.kube.resource import Resource

Json = dict[str, Any]

ON_HOLD = "It is on hold (spec.suspend)."


class StoredFigures(Struct, frozen=True):
    """What the API server has; implements ``mcad.client.figures.polled.PolledSource``.

    ``reason`` says why the dispatcher cannot be asked, and what to do. ``find`` tries it again.
    """

    client: Client
    namespace: str | None
    reason: str
    find: Callable[[], Awaitable[PolledSource]]
    only: str | None = None

    is_stored = True

    @property
    def notes(self) -> tuple[str, ...]:
        """The warning that this is what is stored."""
        return (
            f"{self.reason}; what is stored is shown, without positions, demands, start times and "
            "capacity",
        )

    async def renewed(self) -> PolledSource:
        """The dispatcher's, if it can be asked now."""
        return await self.find()

    async def labelled(self, selector: str) -> frozenset[str]:
        """The uids of the AppWrappers with these labels."""
        return frozenset(one["metadata"]["uid"] for one in await self._list(APPWRAPPERS, selector))

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        """One row per AppWrapper: those that wait first, by age."""
        unknown: Json = {"starts": None} if with_starts else {}
        rows = [_row(obj) | unknown for obj in await self._list(APPWRAPPERS)]
        rows.sort(key=lambda row: (row["position"] == 0, row["firstSeen"] or "~", row["name"]))
        return [row for row in rows if row["position"] is None or not waiting_only]

    async def page(self, query: object) -> ListPage:  # noqa: ARG002 - filtered by the page itself
        """All rows, without counts."""
        return ListPage(await self.rows(waiting_only=False, with_starts=True), None)

    async def capacity(self) -> Json | None:
        """Not stored."""
        return None

    async def detail(self, namespace: str, name: str) -> Json | None:
        """What is stored of one AppWrapper; None if it does not exist."""
        obj = await read_appwrapper(self.client, namespace, name)
        if obj is None:
            return None
        status = as_map(obj.get("status"))
        phases = ("pending", "running", "succeeded", "failed")
        counts = {one: status.get(one, status.get(one.capitalize())) for one in phases}
        unknown = ("starts", "inLine", "dialect", "items", "podSets")
        asked = message(obj, ConditionType.SCALE_UP)
        return ({"scaleUp": asked} if asked else {}) | {
            **_row(obj),
            **dict.fromkeys(unknown),
            "ahead": [],
            "figures": [],
            "keptOffBy": [],
            "reservation": status.get("reservation"),
            "eviction": status.get("eviction"),
            "pods": {key: as_int(count) for key, count in counts.items() if count is not None},
        }

    async def why(self, namespace: str, name: str) -> Json | None:
        """The stored reason of one AppWrapper; None if it does not exist."""
        detail = await self.detail(namespace, name)
        if detail is not None and detail["position"] is None and not detail["why"]:
            self._fail(f"why {namespace}/{name} waits is not stored")
        return detail

    async def quota(self) -> Json:
        """The quota trees, with the figures of their status."""
        found = await self._list(QUOTA_SUBTREES)
        trees: dict[str, list[Json]] = {}
        for one in found:
            tree = as_text(as_map(one["metadata"].get("labels")).get(TREE))
            trees.setdefault(tree, []).extend(_nodes(one))
        is_on = any(as_map(one.get("status")).get("conditions") for one in found)
        return {"enabled": is_on, "trees": [_tree(*one) for one in sorted(trees.items())]}

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """Its holders and its queue are not stored."""
        self._fail(f"the holders and the queue of {tree}/{node} are not stored")

    async def what_if(self, question: Question, own: str) -> Json:  # noqa: ARG002
        """Not stored."""
        self._fail("only the dispatcher can tell")

    def _fail(self, what: str) -> NoReturn:
        raise UnavailableError(f"{what}: {self.reason}")

    async def _list(self, resource: Resource, selector: str = "") -> list[Json]:
        namespace = self.only or self.namespace
        selection = Selection(namespace, label_selector=selector)
        try:
            return (await self.client.list_all(resource, selection))[0]
        except KubeError as error:
            raise explain_list(resource, error, namespace) from error


def _row(obj: Json) -> Json:
    """A row as the dispatcher shows it; what is unknown is None."""
    metadata, spec, status = obj["metadata"], as_map(obj.get("spec")), as_map(obj.get("status"))
    waits = not (end(obj) or state(obj) in DISPATCHED)
    stalled = message(obj, ConditionType.STALLED)
    reason = message(obj, ConditionType.BACKOFF) or (ON_HOLD if is_held(obj) else "")
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "position": None if waits else 0,
        "headOfLine": None,
        "state": state(obj) or str(State.PENDING),
        "queuejobstate": as_text(status.get("queuejobstate")),
        "priority": as_int(spec.get("priority")),
        "firstSeen": as_text(status.get("controllerfirsttimestamp")) or None,
        "demand": None,
        "attempt": as_int(as_map(status.get("dispatch")).get("attempt")),
        "waitsFor": "",
        "why": reason if waits else stalled,
        "stalled": _stall(obj),
    }


def _stall(obj: Json) -> str:
    """The reason of the condition Stalled, "" if its pods are not stalled."""
    found = condition(obj, ConditionType.STALLED)
    return as_text(found.get("reason")) if found.get("status") == "True" else ""


def _nodes(subtree: Json) -> list[Json]:
    """The nodes that a QuotaSubtree defines, with the figures of its status."""
    spec, status = as_map(subtree.get("spec")), as_map(subtree.get("status"))
    parent, defined = as_text(spec.get("parent")), map(as_map, as_list(spec.get("children")))
    written = {
        as_text(one.get("name")): one for one in map(as_map, as_list(status.get("children")))
    }
    return [
        _node(child, written.get(as_text(child.get("name")))) | {"parent": parent}
        for child in defined
    ]


def _node(child: Json, written: Json | None) -> Json:
    """A node as defined, with its figures as written; None if there are none yet."""
    quotas = as_map(child.get("quotas"))
    figures = {one: as_map(written.get(one)) if written is not None else None for one in BOOKS}
    return figures | {
        "node": as_text(child.get("name")),
        "hardLimit": quotas.get("hardLimit") is True,
        "nominal": as_map(quotas.get("requests")),
    }


def _tree(name: str, nodes: list[Json]) -> Json:
    """A tree, each node before its children; nodes without a way to the root are left out."""
    below: dict[str, list[Json]] = {}
    for one in nodes:
        below.setdefault(one["parent"], []).append(one)
    ordered: list[Json] = []
    lines = [(one, [one["node"]]) for one in below.get("", [])]
    while lines:
        node, path = lines.pop(0)
        children = [one for one in below.get(node["node"], []) if one["node"] not in path]
        ordered.append(node | {"path": path, "leaf": not children})
        lines = [(one, [one["node"], *path]) for one in children] + lines
    resources = sorted({key for one in ordered for key in one["nominal"]})
    return {"tree": name, "resources": resources, "nodes": ordered, "faults": [], "warnings": []}
