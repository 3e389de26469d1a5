"""Reads the annotations of pod templates that say how close together the pods have to be.

They are Kueue's, so that its manifests need no change. Values are node labels.
"""

from collections.abc import Iterable, Iterator, Mapping

from mcad.api.labels import key_fault
from mcad.api.located_fields import Fault, describe, join
from mcad.api.wire import Json, Map, as_map, as_text
from mcad.core.state.model import PodSet, Topology

PREFIX = "kueue.x-k8s.io/podset-"
REQUIRED = f"{PREFIX}required-topology"
PREFERRED = f"{PREFIX}preferred-topology"
GROUP = f"{PREFIX}group-name"
SLICES = (f"{PREFIX}slice-required-topology", f"{PREFIX}slice-size")
"""Parts of a pod set in domains of their own: not supported, and refused."""


def annotations_of(template: Map) -> Map:
    """The annotations of a pod template."""
    return as_map(as_map(template.get("metadata")).get("annotations"))


def read_topology(annotations: Map) -> Topology | None:
    """What the annotations ask for; None if that is nothing, or malformed."""
    required = as_text(annotations.get(REQUIRED))
    label = required or as_text(annotations.get(PREFERRED))
    if not label:
        return None
    return Topology((label,), bool(required), as_text(annotations.get(GROUP)))


def topology_faults(annotations: Mapping[str, Json], path: str) -> Iterator[Fault]:
    """The faults of ``annotations`` in the map at this path."""
    where = join(path, "annotations")
    for name in (REQUIRED, PREFERRED):
        label = annotations.get(name)
        if label is not None and (not isinstance(label, str) or key_fault(label)):
            message = f"must be the label of nodes that names their domain, not {describe(label)}."
            yield Fault(join(where, name), message)
    if REQUIRED in annotations and PREFERRED in annotations:
        yield Fault(join(where, PREFERRED), "is given beside the required topology; remove one.")
    for name in SLICES:
        if name in annotations:
            message = "is not supported: a pod set has one domain. Divide it into several sets."
            yield Fault(join(where, name), message)


def divided_groups(sets: Iterable[PodSet]) -> Iterator[tuple[PodSet, Fault]]:
    """Pod sets that ask for another topology than the first set of their group: a group has one
    domain, so it has one topology, as in Kueue."""
    firsts: dict[str, PodSet] = {}
    for one in sets:
        if one.topology is None or not one.topology.group:
            continue
        first = firsts.setdefault(one.topology.group, one)
        if first.topology != one.topology:
            message = f"another pod set of the group {one.topology.group!r} asks for another "
            message += "topology; give all pod sets of a group the same."
            yield one, Fault(join(one.path, f"metadata.annotations.{GROUP}"), message)
