"""Head-of-line blocking: what a refused head keeps from those behind it (core R6)."""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.nodes.shape import Shape
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.queue.queue import Scope
from mcad.core.state.entry import Entry
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Policy
from mcad.core.state.units import Instant


class HeadOfLineBlocking:
    """Head-of-line blocking in one pass.

    The head is the first of the refused that would fit on an empty cluster. Each node of a quota
    tree has a head of its own, which blocks only AppWrappers that want the same share. A hold
    starts on becoming head, once per attempt. While another AppWrapper is ahead its clock stands
    still (``Entry.head_for``), so none blocks the others for longer than one holding time in all.
    """

    def __init__(self, cluster: Cluster) -> None:
        settings = cluster.settings
        self._cluster = cluster
        self._strict = settings.policy is Policy.STRICT_FIFO
        self._holding = settings.head_of_line_holding
        self._blocking: list[Shape] = []
        self._waited_for: dict[tuple[str, str], set[str]] = {}  # nodes of quota trees: leaves
        self._closed = False
        self._heads: dict[Scope, Entry] = {}
        owners = cluster.reservations.values() if self._strict else ()
        self._reserved = [
            (cluster.capacity.shape(one.workload.sets), _place(one)) for one in owners
        ]

    @property
    def open_to_all(self) -> bool:
        """No AppWrapper can be blocked, so refused classes need not be looked at in order."""
        return not self._strict and not self._holding

    def blocks(self, eqclass: EquivalenceClass) -> bool:
        """Whether a head further ahead keeps this class from starting."""
        cluster = self._cluster
        if self._closed:
            return True
        if self._waited_for:
            demand = cluster.admission.demand(eqclass.shape)
            if cluster.forest.vies(eqclass.path, demand, self._waited_for):
                return True
        compete = cluster.capacity.compete
        if any(compete(ahead, eqclass.shape) for ahead in self._blocking):
            return True
        return any(  # they wait for their victims
            owner < _place(eqclass.first()) and compete(shape, eqclass.shape)
            for shape, owner in self._reserved
        )

    def _block(self, scope: Scope, eqclass: EquivalenceClass) -> None:
        if scope is None:
            self._blocking.append(eqclass.shape)
        else:
            self._waited_for.setdefault(scope, set()).add(dict(eqclass.path)[scope[0]])

    def refused(self, eqclass: EquivalenceClass, refusal: Refusal) -> None:
        """The head of a class was refused: it may block those behind, unless it can never fit."""
        if self.open_to_all or not refusal.reason.blocks:
            return
        scope = (refusal.quota.tree, refusal.quota.node) if refusal.quota is not None else None
        if scope in self._heads and not self._strict:
            return  # only the head holds, and to ask which other might be it is dear
        if not self._cluster.capacity.would_fit_emptied(eqclass.shape):
            return
        if self._strict:
            self._block(scope, eqclass)
        if scope not in self._heads:
            self._heads[scope] = eqclass.first()
            self._hold(scope, eqclass)

    def _hold(self, scope: Scope, eqclass: EquivalenceClass) -> None:
        cluster, head = self._cluster, self._heads[scope]
        if cluster.walk.heads.get(scope) != head.uid:
            self._step_down(scope)
            cluster.walk.heads[scope], head.head_since = head.uid, cluster.now
        until = head.head_since + self._holding - head.head_for
        if self._holding and cluster.now < until:
            if scope is None:
                self._closed = True
            else:
                self._block(scope, eqclass)
            cluster.agenda.wake_at(until)

    def goes(self, entry: Entry) -> None:
        """The AppWrapper is dispatched: another attempt may block again."""
        for scope in [each for each, uid in self._cluster.walk.heads.items() if uid == entry.uid]:
            self._step_down(scope)
        entry.head_for = 0

    def closes(self) -> None:
        """The whole line was looked at. Where there is no head, no clock runs."""
        for scope in [each for each in self._cluster.walk.heads if each not in self._heads]:
            self._step_down(scope)

    def _step_down(self, scope: Scope) -> None:
        cluster = self._cluster
        entry = cluster.entries.get(cluster.walk.heads.pop(scope, ""))
        if entry is not None:
            entry.head_for += cluster.now - entry.head_since


def _place(entry: Entry) -> tuple[int, Instant, str]:
    """The turn of the AppWrapper, with or without a reservation."""
    return (-entry.workload.priority, entry.first_seen, entry.uid)
