"""The books of all nodes: the use of each by AppWrapper, and the nodes that gained room.

Entries are noted while an event is processed and posted at its end, so that a pod that binds to its
assumed slot changes nothing, and a net fall requeues nothing (core rule R4).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import numpy as np

from mcad.core.nodes import host_ports
from mcad.core.nodes.codes import Codes
from mcad.core.nodes.columns import ROWS_MIN, Columns, Mask, counted, offered
from mcad.core.nodes.constraints import Constraints, Facts
from mcad.core.nodes.resources import Books, book, with_pod_slot
from mcad.core.state.model import HostPort, Node, Resources
from mcad.core.state.work_bounds import COLUMNS_KEPT_MIN, PORTS_MAX


@dataclass(slots=True, eq=False)
class Row:
    """One node as the ledger knows it: row ``at`` of its columns.

    ``reserved`` is the part of the assumed amounts that belongs to a reservation, whose owner has
    the uid ``reserved_for``: it is not free for other AppWrappers, but takes nothing from present
    pods.
    """

    at: int
    node: Node
    ledger: Ledger = field(repr=False)
    reserved_for: str = ""
    reserved: Books = field(default_factory=dict)

    @property
    def free(self) -> Books:
        """The free amounts: allocatable less use and assumed pods, perhaps below zero."""
        return self.ledger.free.row(self.at)

    @property
    def idle(self) -> Books:
        """The amounts that would be free without AppWrappers."""
        return self.ledger.idle.row(self.at)

    @property
    def overcommitted(self) -> bool:
        """Whether use and assumed pods exceed allocatable, reservations aside."""
        return any(n + self.reserved.get(name, 0) < 0 for name, n in self.free.items())

    @property
    def has_room(self) -> bool:
        """Whether, reservations aside, some of each reserved resource is free."""
        free = self.ledger.free
        return all(free.get(self.at, name) + n > 0 for name, n in self.reserved.items())

    def unreserved(self, resource: str) -> int:
        """The amount that would be free without the reservation on this node."""
        return self.ledger.free.get(self.at, resource) + self.reserved.get(resource, 0)

    @property
    def owes_reservation(self) -> bool:
        """Whether pods outside the reservation still use reserved room."""
        free = self.ledger.free
        return any(n and free.get(self.at, name) < 0 for name, n in self.reserved.items())


Plan = list[tuple[tuple[int, ...], Row, int]]
"""(sets, node, pods): where the pods of a gang go. The sets are positions in the gang; the pods of
several sets in one entry are equal."""


def placed(plan: Plan) -> int:
    """The pods that have a place in the plan."""
    return sum(pods for _, _, pods in plan)


class Ledger:
    """Every node's row, what is free on it, and the entries not yet posted.

    ``free`` is allocatable less use and assumed pods, ``idle`` allocatable less the use of pods
    that belong to no AppWrapper, ``whole`` what an empty node has; ``allocatable`` is the sum of
    ``whole``. ``now`` numbers changes. ``risen`` is the last change at which a node gained room,
    ``moved`` the last at which a node came or went, ``idle_rises`` and ``idle_falls`` the last at
    which room without AppWrappers rose or fell. Since the bounds caught up, ``rose`` has, by row,
    the earlier free amounts of the resources that rose, and ``came`` the rows of nodes that came or
    were resized; after ``is_eased`` all refused shapes have to be looked at. ``overcommitted`` are
    the names of nodes with a resource below zero, ``relieved`` the reserved nodes that an
    AppWrapper has left since the set was last emptied, ``pressed`` the reserved nodes with more
    use, and ``evicting`` the nodes that some of their pods have to leave. ``ports`` are the host
    ports in use or requested, with the amount of each on every node; ``with_ports`` is False where
    only sums count.
    """

    def __init__(self, *, with_ports: bool = True) -> None:
        self._with_ports = with_ports
        self._rows = ROWS_MIN
        self._vacant = list(range(ROWS_MIN - 1, -1, -1))
        self._columns_max = COLUMNS_KEPT_MIN
        self.rows: dict[str, Row] = {}
        self.at_row: list[Row | None] = [None] * ROWS_MIN
        self._columns = self.whole, self.free, self.idle = Columns(), Columns(), Columns()
        self.facts = Facts(ROWS_MIN)
        self.constraints = Constraints(self.facts, ROWS_MIN)
        self.allocatable: Books = {}
        self.ports: Books = {}
        self.now = 0
        self.risen = 0
        self.moved = 0
        self.idle_rises = 0
        self.idle_falls = 0
        self.rose: dict[int, Books] = {}
        self.came: set[int] = set()
        self.is_eased = False
        self.overcommitted: dict[str, None] = {}
        self.relieved: dict[str, None] = {}
        self.pressed: dict[str, None] = {}
        self.evicting: dict[str, None] = {}
        self._noted: dict[str, Books] = {}

    @property
    def size(self) -> int:
        """The number of rows, including rows without a node."""
        return self._rows

    def nothing(self) -> Mask:
        """A mask without rows."""
        return np.zeros(self._rows, np.bool_)

    def label(self, key: str) -> Codes[str]:
        """The values of a label of the nodes."""
        return self.facts.label(key)

    def row(self, at: int) -> Row:
        """The row of this number; ``KeyError`` if no node has it."""
        row = self.at_row[at]
        if row is None:
            raise KeyError(at)
        return row

    def tick(self) -> int:
        """Count a change and return its number."""
        self.now += 1
        return self.now

    def rise(self) -> None:
        """Note that something came free, if only for some gangs."""
        self.risen = self.tick()

    def look_again(self, at: int) -> None:
        """Note that a node that was set aside is free for all gangs again."""
        self.rise()
        self.rose.setdefault(at, {})

    def ease(self) -> None:
        """Note fewer pods without a node: room on any node may serve refused gangs now."""
        self.rise()
        self.is_eased = True

    # -- host ports ----------------------------------------------------------------------------

    def load(self, request: Resources, wanted: tuple[HostPort, ...]) -> Resources:
        """What a pod takes from its node, host ports included. The books know these ports from now
        on, up to ``PORTS_MAX`` ports."""
        if wanted and self._with_ports:
            taken = [
                name for name, _ in host_ports.load(request, wanted) if host_ports.is_port(name)
            ]
            for name in taken:
                self._open(name, host_ports.of_each_node(name))
            if not all(name in self.ports for name in taken):
                self._columns_max = 0  # some known ports are perhaps unused by now
        return self.known_load(request, wanted)

    def known_load(self, request: Resources, wanted: tuple[HostPort, ...]) -> Resources:
        """What a pod takes from its node, with only the host ports that the books know."""
        if not (wanted and self._with_ports):
            return with_pod_slot(request)
        taken = host_ports.load(request, wanted)
        return tuple(
            (name, n) for name, n in taken if name in self.ports or not host_ports.is_port(name)
        )

    def _open(self, name: str, n: int) -> None:
        """Give every node the port, free: no pod used it so far."""
        if name in self.ports or len(self.ports) >= PORTS_MAX:
            return
        self.ports[name] = n
        present = np.array([row is not None for row in self.at_row])
        for columns in self._columns:
            columns.fill(name, n, present)
        self.allocatable[name] = n * len(self.rows)

    def has_many_columns(self) -> bool:
        """Whether it is time to look for unused resources and ports."""
        return len(self.free.names()) > self._columns_max

    def keep_columns(self, used: Container[str]) -> None:
        """Forget the ports that are not in ``used``, and resources that no node has. Called between
        two events, when all entries are posted."""
        for name in [name for name in self.ports if name not in used]:
            del self.ports[name]
            self.allocatable.pop(name, None)  # absent if there are no nodes
            for columns in self._columns:
                columns.drop(name)
        for name in self.free.names():
            if name not in used and not any(
                columns.column(name).any() for columns in self._columns
            ):
                for columns in self._columns:
                    columns.drop(name)
        self._columns_max = max(COLUMNS_KEPT_MIN, 2 * len(self.free.names()))

    # -- nodes ---------------------------------------------------------------------------------

    def add(self, node: Node) -> Row:
        """Add an empty node; the caller notes the pods bound to it."""
        if not self._vacant:
            self._grow()
        at = self._vacant.pop()
        row = self.at_row[at] = self.rows[node.name] = Row(at, node, self)
        has = self._has(node)
        for columns in self._columns:
            columns.set(at, has)
        book(self.allocatable, has.items())
        self._enter(row)
        return row

    def _has(self, node: Node) -> Books:
        return {**{name: offered(n) for name, n in node.allocatable}, **self.ports}

    def _grow(self) -> None:
        before, self._rows = self._rows, self._rows + max(ROWS_MIN, self._rows // 8 // 8 * 8)
        self.at_row += [None] * (self._rows - before)
        self._vacant = list(range(self._rows - 1, before - 1, -1))
        for each in (*self._columns, self.facts, self.constraints):
            each.grow(self._rows)

    def _enter(self, row: Row) -> None:
        """Enter the facts of a node that is new or changed in more than its amounts."""
        node = row.node
        if node.evicts:
            self.evicting[node.name] = None
        self.facts.enter(row.at, node)
        self.constraints.enter(row.at, node)
        self.rise()
        self.moved = self.idle_rises = self.now
        # As if nothing had been free: constraints that admit the node now may not have before.
        self.rose[row.at] = dict.fromkeys(self.free.names(), 0)
        self.came.add(row.at)

    def _leave(self, row: Row) -> None:
        self.evicting.pop(row.node.name, None)
        self.facts.leave(row.at, row.node)
        self.constraints.leave(row.at)
        self.rose.pop(row.at, None)
        self.came.discard(row.at)
        self.rise()  # a DaemonSet has a pod less with a node less
        self.moved = self.idle_falls = self.now

    def remove(self, name: str) -> Row:
        """Remove a node and the entries noted against it."""
        row = self.rows.pop(name)
        for names in (self._noted, self.overcommitted, self.relieved):
            names.pop(name, None)
        self._unbook(self._has(row.node))
        self._leave(row)
        for columns in self._columns:
            columns.set(row.at, {})
        self.at_row[row.at] = None
        self._vacant.append(row.at)
        return row

    def replace(self, node: Node) -> Row:
        """Enter a node that changed for placement; its books stay (R4)."""
        row = self.rows[node.name]
        self._leave(row)
        self._resize(row, node)
        self._enter(row)
        return row

    def resize(self, node: Node) -> None:
        """Enter a node that changed in allocatable only."""
        self._resize(self.rows[node.name], node)
        self.tick()

    def _resize(self, row: Row, node: Node) -> None:
        """Enter a node whose allocatable may differ; the difference is free."""
        before, now = dict(row.node.allocatable), dict(node.allocatable)
        row.node = node
        changed = tuple(
            (name, offered(now.get(name, 0)) - offered(before.get(name, 0)))
            for name in {**before, **now}
            if now.get(name) != before.get(name)
        )
        if not changed:
            return
        self.whole.add(row.at, changed, 1)
        self._unbook({name: -n for name, n in changed})
        self.note(node.name, changed, -1)
        self.note_idle(node.name, changed, -1)
        self.idle_falls = self.now  # some resources may have fallen
        self.came.add(row.at)

    def _unbook(self, amounts: Books) -> None:
        """Subtract amounts, and drop entries that become 0."""
        for name, n in amounts.items():
            self.allocatable[name] = self.allocatable.get(name, 0) - n
            if not self.allocatable[name]:
                del self.allocatable[name]

    # -- entries -------------------------------------------------------------------------------

    def note(self, name: str, amounts: Resources, times: int) -> None:
        """Note that the node loses ``times`` the amounts; ``post`` enters the loss."""
        noted = self._noted.setdefault(name, {})
        for resource, n in amounts:
            noted[resource] = noted.get(resource, 0) + counted(n) * times

    def reserve(self, name: str, uid: str, amounts: Resources, times: int) -> None:
        """Note that this part of the assumed amounts on the node belongs to a reservation."""
        row = self.rows[name]
        book(row.reserved, [(resource, counted(n)) for resource, n in amounts], times)
        row.reserved = {resource: n for resource, n in row.reserved.items() if n}
        row.reserved_for = uid if row.reserved else ""
        self.note(name, amounts, times)

    def note_idle(self, name: str, amounts: Resources, times: int) -> None:
        """Count ``times`` the amounts as used without AppWrappers, at once."""
        self.idle.add(self.rows[name].at, [(each, counted(n)) for each, n in amounts], -times)
        self.tick()
        if times < 0:
            self.idle_rises = self.now
        else:
            self.idle_falls = self.now

    def post(self) -> None:
        """Enter the noted amounts in the books; only the balance is a change."""
        if not self._noted:
            return
        noted, self._noted = self._noted, {}
        for name, amounts in noted.items():
            self._post(self.rows[name], amounts)

    def _post(self, row: Row, amounts: Mapping[str, int]) -> None:
        at, name, rose = row.at, row.node.name, self.rose
        is_over, reserved = name in self.overcommitted, row.reserved
        is_changed = False
        for resource, n in amounts.items():
            if not n:
                continue
            if not is_changed:
                is_changed, _ = True, self.tick()
            column = self.free.opened(resource)
            before = int(column[at])
            column[at] = after = before - n
            if n < 0 and after > 0:  # an overcommitted node lends nothing
                self.risen = self.now
                rose.setdefault(at, {}).setdefault(resource, before)
            if after < 0 and not is_over:
                is_over = after + reserved.get(resource, 0) < 0
            if reserved:
                (self.relieved if n < 0 else self.pressed)[name] = None
        if is_over and row.overcommitted:
            self.overcommitted[name] = None
        elif is_changed:
            self.overcommitted.pop(name, None)
