"""The books of all nodes: what is taken of each and for which AppWrapper, and which changed last.

Entries are noted while an event is processed and posted at its end, so that a pod which binds where
its slot was assumed changes nothing, and a net fall requeues nothing (core rule R4).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Iterable, Sequence

from mcad.core.nodes import host_ports
from mcad.core.nodes.domain_sums import DomainSums, follow_idle
from mcad.core.nodes.pool_without import Label, PoolWithout
from mcad.core.nodes.pools import KeptPool, Pool, Profile, Row
from mcad.core.nodes.resources import Books, book, with_pod_slot
from mcad.core.state.model import Constraint, HostPort, Node, Requirement, Resources
from mcad.core.state.work_bounds import (
    CATCH_UP_MAX,
    LEVELS_KEPT,
    POOLS_PER_STEP,
    PORTS_KEPT_MIN,
    PORTS_MAX,
)


class ChangeLog:
    """Which nodes changed, the latest last; a pod class reads from the end what it has not seen
    yet. ``gained`` is the last change at which any pool rose or shifted. Without one since, no pool
    need be looked at."""

    __slots__ = ("_floor", "_last", "gained", "now")

    def __init__(self) -> None:
        self.now = 0
        self.gained = 0
        self._last: OrderedDict[int, int] = OrderedDict()
        self._floor = 0

    def tick(self) -> int:
        """The number of a new change."""
        self.now += 1
        return self.now

    def gain(self) -> int:
        """The number of a new change at which pools rise or shift."""
        self.gained = self.tick()
        return self.gained

    def touch(self, rank: int, *, gained: bool = False) -> int:
        """The node changed; returns the number of the change."""
        self.now += 1
        if gained:
            self.gained = self.now
        self._last[rank] = self.now
        self._last.move_to_end(rank)
        if len(self._last) > CATCH_UP_MAX:
            _, self._floor = self._last.popitem(last=False)
        return self.now

    def since(self, change: int) -> list[int] | None:
        """The nodes that changed after ``change``; None if there are too many to visit."""
        if change < self._floor:
            return None
        ranks = []
        for rank, at in reversed(self._last.items()):
            if at <= change:
                break
            ranks.append(rank)
        return ranks


class Ledger:
    """Every node's row, the pools that hold them, and the entries not yet posted.

    ``overcommitted`` are the names of nodes with a resource below zero. ``membership`` numbers
    changes of pool membership, ``joins`` the additions alone. ``idle_rises`` and ``idle_falls``
    number the last changes of what would be free without AppWrappers. ``relieved`` are the names of
    reserved nodes that an AppWrapper has left since the set was last emptied, ``pressed`` those of
    which more is used, and ``evicting`` nodes that some of their pods have to leave. ``ports`` are
    the host ports that are used or requested, with what every node has of each; ``with_ports`` is
    False where only sums count. ``domain_sums`` are kept for topology levels, by label and whether
    AppWrappers are left out. ``steps`` counts the work of posting, about a microsecond each: with
    thousands of node selectors a node is in hundreds of pools.
    """

    def __init__(self, *, with_ports: bool = True) -> None:
        self._with_ports = with_ports
        self._ports_max = PORTS_KEPT_MIN
        self.ports: Books = {}
        self.log = ChangeLog()
        self.rows: dict[str, Row] = {}
        self.allocatable: Books = {}
        self.overcommitted: dict[str, None] = {}
        self.membership = 0
        self.joins = 0
        self.idle_rises = 0
        self.idle_falls = 0
        self.relieved: dict[str, None] = {}
        self.pressed: dict[str, None] = {}
        self.evicting: dict[str, None] = {}
        self.domain_sums: dict[tuple[str, bool], DomainSums] = {}
        self.steps = 0
        self._pools: dict[KeptPool, None] = {}
        self._asked: dict[Label | None, dict[KeptPool, None]] = {}
        self._without: dict[Label, dict[PoolWithout, None]] = {}
        self._profiles: dict[Resources, Profile] = {}
        self._labelled: dict[Label, dict[str, Row]] = {}
        self._values: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._at_rank: dict[int, Row] = {}
        self._left: dict[int, tuple[tuple[str, str], ...]] = {}
        self._rank = 0
        self._noted: dict[str, Books] = {}

    # -- pools ---------------------------------------------------------------------------------

    def pool(
        self, admits: Callable[[Node], bool], labels: tuple[Label, ...] | None = None
    ) -> KeptPool:
        """A new pool, filled with the nodes it admits: nodes with one of these ``labels``, if they
        are known. Only such nodes are offered to it later on."""
        pool = KeptPool(admits, labels)
        self._pools[pool] = None
        for label in (None,) if labels is None else labels:
            self._asked.setdefault(label, {})[pool] = None
        for row in self.rows.values() if labels is None else self.with_labels(labels):
            pool.offer(row, self.log.now)
        return pool

    def pool_without(self, base: KeptPool, constraint: Constraint) -> PoolWithout:
        """A new pool: what the constraint, which has ``NotIn``, admits of the other pool."""
        pool = PoolWithout(base, constraint, self)
        for label in pool.labels:
            self._without.setdefault(label, {})[pool] = None
        return pool

    def with_labels(self, labels: Iterable[Label]) -> list[Row]:
        """The nodes with one of the labels, in the order of their ranks."""
        groups = [self._labelled[label] for label in labels if label in self._labelled]
        if len(groups) == 1:
            return list(groups[0].values())
        found = {row.rank: row for group in groups for row in group.values()}
        return [found[rank] for rank in sorted(found)]

    def demanded(self, constraint: Constraint) -> tuple[Label, ...] | None:
        """Labels of which every node that the constraint admits has one, as few nodes as possible:
        its name, the rarest label of the selector, or for each term of the affinity those of one
        ``In``. None if it demands none."""
        if constraint.node_name:
            return (_name_of(constraint.node_name),)
        choices: list[tuple[Label, ...]] = [(label,) for label in constraint.selector]
        terms = [self._of_term(term) for term in constraint.affinity or ()]
        named = [one for one in terms if one is not None]
        if terms and len(named) == len(terms):
            choices.append(tuple(dict.fromkeys(label for labels in named for label in labels)))
        return min(choices, key=self.count_labelled, default=None)

    def _of_term(self, term: tuple[Requirement, ...]) -> tuple[Label, ...] | None:
        """The labels that the term demands by ``In``, those of the rarest such requirement; None if
        it has no such requirement."""
        demanded = [
            tuple((one.key, value) for value in one.values)
            for one in term
            if one.operator == "In" and not one.field
        ]
        return min(demanded, key=self.count_labelled, default=None)

    def count_labelled(self, labels: Iterable[Label]) -> int:
        """At most how many nodes have one of the labels."""
        return sum(len(self._labelled.get(label, ())) for label in labels)

    def values_of(self, label: str) -> tuple[str, ...]:
        """The values that nodes have of a label, sorted."""
        at, values = self._values.get(label, (-1, ()))
        if at != self.membership:
            values = tuple(sorted(value for key, value in self._labelled if key == label))
            self._values[label] = (self.membership, values)
        return values

    def with_label(self, label: tuple[str, str]) -> Collection[Row]:
        """The nodes with this value of a label, whether they are ready or not."""
        return self._labelled.get(label, {}).values()

    def values_changed(self, label: str, since: int) -> Sequence[str] | None:
        """The values of a label that nodes have or had which changed after ``since``; None if there
        are too many to visit."""
        ranks = self.log.since(since)
        if ranks is None:
            return None
        found: dict[str, None] = {}
        for rank in ranks:
            row = self._at_rank.get(rank)
            labels = self._left[rank] if row is None else row.node.labels
            found.update((value, None) for key, value in labels if key == label)
        return list(found)

    def keep_pools(self, used: dict[Pool, None]) -> None:
        """Disband the pools that are not among ``used``."""
        for pool in [pool for pool in self._pools if pool not in used]:
            pool.disband()
            del self._pools[pool]
            for label in (None,) if pool.labels is None else pool.labels:
                del self._asked[label][pool]
                if not self._asked[label]:
                    del self._asked[label]
        for label, pools in list(self._without.items()):
            kept = {pool: None for pool in pools if pool in used}
            self._without[label] = kept
            if not kept:
                del self._without[label]

    def pools(self) -> list[KeptPool]:
        """All pools that keep books, in the order of their making."""
        return list(self._pools)

    def pools_without(self) -> list[PoolWithout]:
        """All pools that are another without a few nodes."""
        return list(dict.fromkeys(pool for pools in self._without.values() for pool in pools))

    # -- topology ------------------------------------------------------------------------------

    def count_domains(self, level: str, *, emptied: bool) -> DomainSums:
        """What is free in each domain of a level now: a look at every node."""
        return DomainSums(level, self.rows.values(), emptied=emptied)

    def keep_domains(self, counted: DomainSums) -> None:
        """Keep these sums, which were counted just now, in step from now on. There are at most
        ``LEVELS_KEPT`` of them; beyond, the others have to be counted again."""
        if len(self.domain_sums) >= LEVELS_KEPT:
            self._forget_domains()
        self.domain_sums[counted.level, counted.emptied] = counted
        for row in self.rows.values():
            counted.follow(row)

    def _forget_domains(self) -> None:
        self.domain_sums.clear()
        for row in self.rows.values():
            row.sums, row.idle_sums = [], []

    # -- host ports ----------------------------------------------------------------------------

    def load(self, request: Resources, wanted: tuple[HostPort, ...]) -> Resources:
        """What a pod takes from its node, host ports included; these ports are known from then on,
        up to ``PORTS_MAX``."""
        if wanted and self._with_ports:
            taken = [
                name for name, _ in host_ports.load(request, wanted) if host_ports.is_port(name)
            ]
            for name in taken:
                self._open(name, host_ports.of_each_node(name))
            if not all(name in self.ports for name in taken):
                self._ports_max = 0  # perhaps some are in use no more
        return self.known_load(request, wanted)

    def known_load(self, request: Resources, wanted: tuple[HostPort, ...]) -> Resources:
        """The same, with only those host ports that are known already."""
        if not (wanted and self._with_ports):
            return with_pod_slot(request)
        taken = host_ports.load(request, wanted)
        return tuple(
            (name, n) for name, n in taken if name in self.ports or not host_ports.is_port(name)
        )

    def _open(self, name: str, n: int) -> None:
        """Every node has the port from now on, free: it was not used so far."""
        if name in self.ports or len(self.ports) >= PORTS_MAX:
            return
        self.ports[name] = n
        self._forget_domains()  # every node has something more, which is rare
        for profile in self._profiles.values():
            profile.amounts[name] = n
        for row in self.rows.values():
            row.free[name] = row.idle[name] = n
        for pool in self._pools:
            pool.total[name] = n * len(pool.rows)
        self.allocatable[name] = n * len(self.rows)

    def has_many_ports(self) -> bool:
        """Whether it is time to look for unused ports."""
        return len(self.ports) > self._ports_max

    def keep_ports(self, used: Container[str]) -> None:
        """Forget the ports that are not among ``used``; between two events, when all is posted."""
        self._forget_domains()
        for name in [name for name in self.ports if name not in used]:
            del self.ports[name]
            for profile in self._profiles.values():
                del profile.amounts[name]
            for row in self.rows.values():
                del row.free[name], row.idle[name]
            for pool in self._pools:
                pool.total.pop(name, None)  # one without nodes may never have heard of it
            self.allocatable.pop(name, None)  # without nodes there is nothing of it
        self._ports_max = max(PORTS_KEPT_MIN, 2 * len(self.ports))

    # -- nodes ---------------------------------------------------------------------------------

    def add(self, node: Node) -> Row:
        """A node appears, empty; what is bound to it is noted by the caller."""
        profile = self._profile(node)
        row = Row(self._next_rank(), node, profile, dict(profile.amounts), dict(profile.amounts))
        self._join(row)
        book(self.allocatable, profile.amounts.items())
        self.idle_rises = self.log.now
        return row

    def remove(self, name: str) -> Row:
        """A node is gone, and with it the entries noted against it."""
        row = self.rows.pop(name)
        self._noted.pop(name, None)
        self.overcommitted.pop(name, None)
        self.relieved.pop(name, None)
        self._unbook(row.profile.amounts.items())
        self._leave(row)
        self._drop_profile(row.node)
        self.idle_falls = self.log.now
        return row

    def replace(self, node: Node) -> Row:
        """The node has changed for placement: a new rank, the same books (R4)."""
        old = self.rows[node.name]
        row = Row(self._next_rank(), node, self._profile(node), old.free, old.idle)
        row.reserved, row.reserved_for = old.reserved, old.reserved_for
        self._leave(old)
        self._drop_profile(old.node)
        self._join(row)
        self._rebook(node.name, old.node.allocatable, node.allocatable)
        self.idle_rises = self.idle_falls = self.log.tick()
        return row

    def resize(self, node: Node) -> None:
        """Only allocatable changed; the node keeps its rank."""
        row = self.rows[node.name]
        old, row.node = row.node, node
        before, row.profile = row.profile, self._profile(node)
        change = self.log.gain()
        for pool in row.pools:
            pool.resized(before, row.profile, change)
        self._drop_profile(old)
        self._rebook(node.name, old.allocatable, node.allocatable)

    def _rebook(self, name: str, old: Resources, new: Resources) -> None:
        book(self.allocatable, new)
        self._unbook(old)
        for amounts, times in ((old, 1), (new, -1)):
            self.note(name, amounts, times)
            self.note_idle(name, amounts, times)

    def _unbook(self, amounts: Iterable[tuple[str, int]]) -> None:
        """Subtract amounts, and drop entries that become 0."""
        for name, n in amounts:
            self.allocatable[name] -= n
            if not self.allocatable[name]:
                del self.allocatable[name]

    def _profile(self, node: Node) -> Profile:
        profile = self._profiles.get(node.allocatable)
        if profile is None:
            profile = Profile({**dict(node.allocatable), **self.ports})
            self._profiles[node.allocatable] = profile
        profile.nodes += 1
        return profile

    def _drop_profile(self, node: Node) -> None:
        profile = self._profiles[node.allocatable]
        profile.nodes -= 1
        if not profile.nodes:
            del self._profiles[node.allocatable]

    def _next_rank(self) -> int:
        self._rank += 1
        return self._rank

    def _join(self, row: Row) -> None:
        self.rows[row.node.name] = row
        if row.node.evicts:
            self.evicting[row.node.name] = None
        asking = self._asked.get(None, {}).copy()
        for label in _labels_of(row.node):
            self._labelled.setdefault(label, {})[row.node.name] = row
            asking.update(self._asked.get(label, {}))
        self._at_rank[row.rank] = row
        self.membership += 1
        self.joins += 1
        change = self.log.touch(row.rank, gained=True)
        for pool in asking:
            pool.offer(row, change)
        for sums in self.domain_sums.values():
            sums.join(row)
        self._mark_stale(row.node)

    def _leave(self, row: Row) -> None:
        self.evicting.pop(row.node.name, None)
        for label in _labels_of(row.node):
            del self._labelled[label][row.node.name]
            if not self._labelled[label]:
                del self._labelled[label]
        self._note_left(row)
        self.membership += 1
        change = self.log.touch(row.rank, gained=True)
        for pool in list(row.pools):
            pool.withdraw(row, change)
        for sums in self.domain_sums.values():
            sums.leave(row)
        self._mark_stale(row.node)
        row.free, row.idle = {}, {}  # a sorted tail may still name it

    def _mark_stale(self, node: Node) -> None:
        """A node came or went: pools that may lack it have to look at those that they lack."""
        for label in node.labels if self._without else ():
            for pool in self._without.get(label, ()):
                pool.is_stale = True

    def _note_left(self, row: Row) -> None:
        """Keep its labels for as long as the log may name its rank."""
        del self._at_rank[row.rank]
        self._left[row.rank] = row.node.labels
        if len(self._left) > CATCH_UP_MAX:
            del self._left[next(iter(self._left))]

    # -- entries -------------------------------------------------------------------------------

    def note(self, name: str, amounts: Resources, times: int) -> None:
        """Take ``times`` the amounts from the node (give back if negative), when posted."""
        noted = self._noted.setdefault(name, {})
        for resource, n in amounts:
            noted[resource] = noted.get(resource, 0) + n * times

    def reserve(self, name: str, uid: str, amounts: Resources, times: int) -> None:
        """So much of what is assumed on the node belongs to a reservation, when posted."""
        row = self.rows[name]
        book(row.reserved, amounts, times)
        row.reserved = {resource: n for resource, n in row.reserved.items() if n}
        row.reserved_for = uid if row.reserved else ""
        self.note(name, amounts, times)

    def note_idle(self, name: str, amounts: Resources, times: int) -> None:
        """The same for what would be used without AppWrappers; at once."""
        row = self.rows[name]
        if row.idle_sums:
            follow_idle(row, amounts, times)
        book(row.idle, amounts, -times)
        if times < 0:
            self.idle_rises = self.log.touch(row.rank)
        else:
            self.idle_falls = self.log.touch(row.rank)

    def post(self) -> None:
        """Bring the books up to date with what was noted; only the balance is a change."""
        if not self._noted:
            return
        noted, self._noted = self._noted, {}
        for name, amounts in noted.items():
            self._post(self.rows[name], amounts)

    def _post(self, row: Row, amounts: Books) -> None:
        free, changed, rose = row.free, False, False
        for name, taken in amounts.items():
            if not taken:
                continue
            changed = True
            if name not in free:
                row.introduce(name)
            before = free[name]
            after = free[name] = before - taken
            # Clamped per node: an overcommitted node lends nothing. (Calling max for this would be
            # a quarter of what a pod costs.)
            lent = before if before > 0 else 0
            rose = rose or after > lent
            if row.reserved:
                (self.relieved if after > before else self.pressed)[row.node.name] = None
            if delta := (after if after > 0 else 0) - lent:
                for pool in row.pools:
                    pool.total[name] += delta
                for sums in row.sums:
                    sums[name] = sums.get(name, 0) + delta
        if not changed:
            return
        self.steps += len(row.pools) // POOLS_PER_STEP
        change = self.log.touch(row.rank, gained=rose)
        for pool in row.pools if rose else ():
            pool.rise(row, change)
        if row.overcommitted:
            self.overcommitted[row.node.name] = None
        else:
            self.overcommitted.pop(row.node.name, None)


def _labels_of(node: Node) -> tuple[Label, ...]:
    """Its labels, and its name as one."""
    return (*node.labels, _name_of(node.name))


def _name_of(node: str) -> Label:
    """The name of a node as a label: no key of a label is empty."""
    return ("", node)
