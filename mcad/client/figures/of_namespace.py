"""Figures for a caller that may list one namespace only.

The demand is computed from the manifests, and pods are those of the namespace. Positions and free
capacity depend on the whole cluster: they are unknown, and reasons are those of the status.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcad.api.wire import as_list, as_map, as_text
from mcad.client.errors import McadError
from mcad.client.figures.written_shares import BOOKS, Shares, written_shares
from mcad.core.state.reasons import ConditionType
from mcad.core.state.waiting_reason import WaitingReason

if TYPE_CHECKING:
    from mcad.client.figures.computed import ComputedFigures

Json = dict[str, Any]

NOTE = (
    "you may not list the nodes and pods of the whole cluster: positions and free capacity are not "
    "known, reasons are those of the last refusal; an administrator can enable the visibility API "
    "of the chart, which shows more"
)
NOT_YET = "Not judged by the dispatcher yet."

_SHARE = re.compile(r'Quota tree "(?P<tree>[^"]+)", node "(?P<node>[^"]+)": (?P<resource>\S+): ')
_LEAF = re.compile(r'Quota tree "(?P<tree>[^"]+)"(?: has no leaf|:) "(?P<leaf>[^"]+)"')

NO_SHARES = (
    "you may not list quotasubtrees in the whole cluster, which define the quota; ask an "
    "administrator for this right"
)

NOT_WRITTEN: Json = dict.fromkeys(BOOKS)

_FIGURE = re.compile(
    r"(?P<resource>\S+): (?P<requested>\S+) requested, (?P<available>\S+) available"
    r"(?:, (?P<missing>\S+) missing)?\."
)


class NamespaceFigures(Struct, frozen=True):
    """Figures of one namespace; implements ``mcad.client.figures.figures.Figures``.

    ``seen`` is computed without nodes: only what does not depend on capacity is used.
    ``only`` is the namespace.
    """

    seen: ComputedFigures
    only: str

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings: what is missing, and what to ask for."""
        return (NOTE, *self.seen.notes)

    async def labelled(self, selector: str) -> frozenset[str]:
        """The uids of the AppWrappers with these labels."""
        return await self.seen.labelled(selector)

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        """One row per AppWrapper, the queue first, by priority and age; start times are unknown."""
        rows = await self.seen.rows(waiting_only=waiting_only)
        unknown: Json = {"starts": None} if with_starts else {}
        return [self._written(row) | unknown for row in rows]

    async def capacity(self) -> Json | None:
        """Not known."""
        return None

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full; None if it does not exist."""
        view = await self.seen.detail(namespace, name)
        if view is None:
            return None
        for one in view["podSets"]:
            one["reserved"] = None
        written = self._written(view) | {"starts": None}
        if written["position"] is None:
            written |= {"inLine": None, "ahead": None, "figures": _figures(written["why"])}
        return written

    async def quota(self) -> Json:
        """All quota trees, with the figures of their status."""
        view = await self.seen.quota()
        self._check_shares()
        return view | {"trees": [_with_written(tree, self._shares()) for tree in view["trees"]]}

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with holders and queue of this namespace; None if it does not exist."""
        self._check_shares()
        view = await self.seen.quota_node(tree, node)
        if view is None:
            return None
        queue = [self._written(row) for row in view["queue"]]
        return view | self._shares().get((tree, node), NOT_WRITTEN) | {"queue": queue}

    def _check_shares(self) -> None:
        if self.seen.subtrees is None:
            raise McadError(NO_SHARES)

    def _shares(self) -> Shares:
        return written_shares(self.seen.subtrees or ())

    def _written(self, row: Json) -> Json:
        """The row with the state and reason of the status instead of computed ones."""
        status = as_map(self.seen.objects[row["uid"]].get("status"))
        known = {key: as_text(status.get(key)) or row[key] for key in ("state", "queuejobstate")}
        if not row["position"]:
            return row | known | _stall(status)
        why = _last_refusal(status)
        if status.get("reservation"):
            known |= {"position": 0, "headOfLine": False}
            return (
                row | known | {"waitsFor": str(WaitingReason.ROOM_RESERVED), "why": why or NOT_YET}
            )
        unknown = {"position": None, "headOfLine": None}
        return row | known | unknown | {"waitsFor": _waits_for(why), "why": why or NOT_YET}


def _with_written(tree: Json, shares: Shares) -> Json:
    nodes = [node | shares.get((tree["tree"], node["node"]), NOT_WRITTEN) for node in tree["nodes"]]
    return tree | {"nodes": nodes}


def _stall(status: Json) -> Json:
    """Why pods do not run, as the dispatcher wrote it; {} if nothing is wrong."""
    shown = _condition(status, ConditionType.STALLED)
    texts = {"stalled": as_text(shown.get("reason")), "why": as_text(shown.get("message"))}
    return texts if shown else {}


def _last_refusal(status: Json) -> str:
    """The message of the condition Backoff, "" if there is none."""
    shown = _condition(status, ConditionType.BACKOFF)
    return as_text(shown.get("message")) or as_text(shown.get("reason"))


def _condition(status: Json, kind: ConditionType) -> Json:
    """A condition that is True, {} if it is not."""
    for condition in map(as_map, as_list(status.get("conditions"))):
        if condition.get("type") == kind and condition.get("status") == "True":
            return condition
    return {}


def _waits_for(message: str) -> str:
    """What a refusal waits for, in one word: a quota node, a leaf, or a resource."""
    if share := _SHARE.search(message):
        return f"{share['tree']}/{share['node']}:{share['resource']}"
    if leaf := _LEAF.search(message):
        return f"{leaf['tree']}/{leaf['leaf']}"
    figures = _figures(message)
    return figures[0]["resource"] if figures else "capacity" if message else ""


def _figures(message: str) -> list[Json]:
    """The figures in the message of a refusal, missing resources first."""
    found = [match.groupdict(default="0") for match in _FIGURE.finditer(message)]
    return sorted(found, key=lambda one: one["missing"] == "0")
