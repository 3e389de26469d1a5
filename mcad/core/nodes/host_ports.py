"""Host ports as amounts of a node, so that books, reservations and verdicts count them.

kube-scheduler's NodePorts in sums: a pod that binds a port at every address takes the whole port; a
pod that binds it at a single address takes a splinter of the port and all of that address. Both
exclude a second pod exactly where kube-scheduler does. ``hostIP`` is compared as text, as in
kube-scheduler: only ``0.0.0.0`` is every address.
"""

from __future__ import annotations

from functools import lru_cache

from mcad.core.nodes.resources import Books, with_pod_slot
from mcad.core.state.model import EVERY_ADDRESS, HostPort, Resources
from mcad.core.state.refusal import HOST_PORT, Shortage

WHOLE = 1 << 16
"""The splinters of one port of a node: more than a node has addresses."""

_PREFIX = "hostPort/"  # a port name has two slashes, a resource name has at most one
_LOADS = 4096


@lru_cache(_LOADS)
def load(request: Resources, ports: tuple[HostPort, ...]) -> Resources:
    """What a pod takes from its node: its request, one of its ``pods``, and its host ports."""
    amounts: Books = {}
    for port in dict.fromkeys(ports):
        name = f"{_PREFIX}{port.protocol}/{port.number}"
        if port.address == EVERY_ADDRESS:
            amounts[name] = WHOLE
        else:
            amounts[f"{name}/{port.address}"] = 1
            amounts[name] = min(WHOLE, amounts.get(name, 0) + 1)
    return tuple(sorted((*with_pod_slot(request), *amounts.items())))


def is_port(name: str) -> bool:
    """Whether this amount is a host port."""
    return name.startswith(_PREFIX)


def of_each_node(name: str) -> int:
    """The amount of this resource or port that every node has."""
    return WHOLE if name.count("/") == 2 else 1


def without_ports(amounts: Resources) -> Resources:
    """Amounts for users: only resources that a manifest can name."""
    return tuple(pair for pair in amounts if not is_port(pair[0]))


def in_whole_ports(shortage: Shortage) -> Shortage:
    """A shortage for a refusal: ports by their names, in nodes instead of splinters."""
    name = shortage.resource
    if not is_port(name):
        return shortage
    protocol, number, *address = name.removeprefix(_PREFIX).split("/")
    words = f"{HOST_PORT} {number}/{protocol}" + (f" at {address[0]}" if address else "")
    asked, there = shortage.requested, shortage.available
    if asked >= WHOLE:
        asked, there = asked // WHOLE, there // WHOLE
    return Shortage(words, asked, there)
