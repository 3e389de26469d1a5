"""The demand of one wrapped object: its pod sets, inferred by kind or declared by the user."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mcad.api.anti_affinity import NAME as POD_ANTI_AFFINITY
from mcad.api.anti_affinity import PodLabels
from mcad.api.kinds import KINDS, Family, kubeflow_rank
from mcad.api.located_fields import Fault, Part, clamp_count, join
from mcad.api.podspec import ONE_POD, Amounts, Placement, amounts, to_resources
from mcad.api.template_cache import Reading, read_template
from mcad.api.templates import PathError, find_templates, follow, set_path
from mcad.api.topology import annotations_of, read_topology, topology_faults
from mcad.api.wire import Json, Map, as_list, as_map, dig
from mcad.core.state.model import ObjectRef, PodSet, Resources
from mcad.core.state.quantity import format_amount

_T = TypeVar("_T")


class Found(Struct, frozen=True):
    """Pods of one shape that are inferred from a manifest.

    ``template`` includes the additions of the operator, ``reading`` is what was read from it, and
    ``path`` its place in the manifest. ``implied`` pods have no place there.
    """

    path: str
    template: Map
    reading: Reading
    replicas: int
    per_node: bool = False
    implied: bool = False


class Demand(Struct, frozen=True):
    """The pod sets of one item, with faults and warnings.

    ``pods`` has the labels and terms of each set. ``grace`` is the termination grace period of its
    pods in seconds, None if it has no template. Paths of faults are relative to the component; the
    manifest in it is ``template``.
    """

    sets: tuple[PodSet, ...]
    pods: tuple[PodLabels, ...] = ()
    grace: int | None = None
    guessed: bool = False
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


class Inference(Struct, frozen=True):
    """The pods that follow from the manifest alone; ``known``: the kind is in the table."""

    found: tuple[Found, ...]
    faults: tuple[Fault, ...]
    known: bool
    guessed: bool

    @property
    def grace(self) -> int | None:
        """The longest ``terminationGracePeriodSeconds`` of its pods, None if it has none."""
        return max((one.reading.grace for one in self.found), default=None)


def infer(obj: Map, group: str, kind: str) -> Inference:
    """The pods of an object of this kind."""
    row = KINDS.get((group, kind))
    faults: list[Fault] = []
    root = Part(obj, "", faults)
    if row is None:
        found = tuple(_by_walking(root))
        return Inference(found, tuple(faults), known=False, guessed=bool(found))
    found = tuple(one for family in row.families for one in _by_table(family, root))
    return Inference(found, tuple(faults), known=True, guessed=row.guessed and bool(found))


def _by_table(family: Family, root: Part) -> Iterable[Found]:
    for part in family_parts(family, root):
        if family.build:
            template = family.build(part, root.deep(family.owner))
        else:
            template = part.deep(family.template).value
        if template:
            path, reading = join(part.path, family.template), read_template(template)
            pods = clamp_count(family.pods(part))  # a product of counts
            yield Found(path, template, reading, pods, family.per_node, family.implied)


def family_parts(family: Family, root: Part) -> Sequence[Part]:
    """The elements of a family in the order in which pod sets are numbered."""
    parts = list(root.elements(family.element))
    return sorted(parts, key=kubeflow_rank) if family.element.endswith("{}") else parts


def _by_walking(root: Part) -> Iterable[Found]:
    for spot in find_templates(root.value):
        owner = Part(spot.owner or {}, spot.path.rpartition(".")[0], root.faults)
        reading = read_template(spot.template)
        yield Found(spot.path, spot.template, reading, owner.count("replicas", 1))


def inferred_demand(obj: Map, inference: Inference, item: int) -> Demand:
    """The demand of an object without declared pods."""
    faults = [Fault(set_path(fault.path), fault.message) for fault in inference.faults]
    for found in inference.found:
        faults += found.reading.faults_at(set_path(found.path))
        faults += topology_faults(
            annotations_of(found.template), f"{set_path(found.path)}.metadata"
        )
    return Demand(
        _to_sets(obj, inference, item),
        tuple(map(_labels_of, inference.found)),
        guessed=inference.guessed,
        faults=tuple(faults),
    )


def _to_sets(obj: Map, inference: Inference, item: int) -> tuple[PodSet, ...]:
    volumes = bool(as_list(dig(obj, "spec", "volumeClaimTemplates")))
    return tuple(
        _pod_set(found, item, index, counts_pods=not inference.known, claims_volumes=volumes)
        for index, found in enumerate(inference.found)
    )


def _pod_set(
    found: Found, item: int, index: int, *, counts_pods: bool, claims_volumes: bool = False
) -> PodSet:
    place = found.reading.place
    names = place.unmodelled
    if claims_volumes and "volumes" not in names:
        names = (*names, "volumes")
    return PodSet(
        item=item,
        index=index,
        path=set_path(found.path),
        replicas=found.replicas,
        request=found.reading.request,
        constraint=place.constraint,
        cap=place.cap,
        per_node=found.per_node,
        counts_pods=counts_pods,
        unmodelled=names,
        ports=place.ports,
        topology=None if found.per_node else read_topology(annotations_of(found.template)),
    )


def _labels_of(found: Found) -> PodLabels:
    labels = as_map(as_map(found.template.get("metadata")).get("labels"))
    texts = sorted((key, one) for key, one in labels.items() if isinstance(one, str))
    return PodLabels(tuple(texts), found.reading.place.terms)


def template_of(obj: Map, ref: ObjectRef, one: PodSet) -> Map | None:
    """The pod template that a set was read from, None if it was declared without any."""
    found = infer(obj, ref.group, ref.kind).found
    same = [each for each in found[one.index : one.index + 1] if set_path(each.path) == one.path]
    for each in (*same, *found):
        if set_path(each.path) == one.path:
            return each.template
    try:
        return follow(one.path, obj)
    except PathError:
        return None


# v1beta1: custompodresources


class DeclaredPods(Struct, frozen=True):
    """One entry of ``custompodresources``."""

    replicas: int
    requests: Mapping[str, Json]
    limits: Mapping[str, Json]


def declared_demand(
    obj: Map, inference: Inference, declared: Sequence[DeclaredPods], item: int
) -> Demand:
    """The demand declared by ``custompodresources``; the template only says where pods may go."""
    inferred = _to_sets(obj, inference, item)
    labels = [_labels_of(one) for one in inference.found]
    places = _places(declared, inferred, labels)
    topologies = _by_position(declared, inferred, [one.topology for one in inferred], None)
    pods = _by_position(declared, inferred, labels, PodLabels())
    sets = tuple(
        PodSet(
            item=item,
            index=index,
            path="",
            replicas=entry.replicas,
            request=_declared_request(entry),
            constraint=place.constraint,
            cap=place.cap,
            counts_pods=True,
            unmodelled=place.unmodelled,
            ports=place.ports,
            topology=topologies[index],
        )
        for index, (entry, place) in enumerate(zip(declared, places, strict=True))
    )
    return Demand(sets, tuple(pods), warnings=tuple(_difference(sets, inferred)))


def _declared_request(entry: DeclaredPods) -> Resources:
    """The request of an entry; as in MCAD, a limit replaces a request that is absent or 0."""
    requests = {name: value for name, value in amounts(dict(entry.requests)).items() if value}
    return to_resources(amounts(dict(entry.limits)) | requests | ONE_POD)


def _places(
    declared: Sequence[DeclaredPods], inferred: Sequence[PodSet], labels: Sequence[PodLabels]
) -> list[Placement]:
    """Where declared pods may go: as the template at the same position, if all counts are equal;
    else as the templates say, if they agree; else anywhere."""
    if _counts_agree(declared, inferred):
        return [_place(one, one.unmodelled) for one in inferred]
    names = [name for one in inferred for name in one.unmodelled]
    if len(set(labels)) > 1 and any(one.terms for one in labels):
        names.append(POD_ANTI_AFFINITY)
    named = tuple(dict.fromkeys(names))
    place = _common((_place(one, named) for one in inferred), Placement(unmodelled=named))
    return [place] * len(declared)


def _by_position(
    declared: Sequence[DeclaredPods], inferred: Sequence[PodSet], values: list[_T], otherwise: _T
) -> list[_T]:
    """What else templates say of declared pods, by the same rule."""
    if _counts_agree(declared, inferred):
        return values
    return [_common(values, otherwise)] * len(declared)


def _counts_agree(declared: Sequence[DeclaredPods], inferred: Sequence[PodSet]) -> bool:
    return [entry.replicas for entry in declared] == [one.replicas for one in inferred]


def _common(values: Iterable[_T], otherwise: _T) -> _T:
    """The value that all have in common."""
    found = set(values)
    return found.pop() if len(found) == 1 else otherwise


def _place(one: PodSet, unmodelled: tuple[str, ...]) -> Placement:
    return Placement(one.constraint, one.cap, unmodelled, one.ports)


def _difference(declared: Sequence[PodSet], inferred: Sequence[PodSet]) -> Iterable[str]:
    """A warning if declaration and template disagree; the declaration counts."""
    if not inferred or any(one.per_node for one in inferred):
        return
    stated, found = _sum(declared), _sum(inferred)
    if stated != found:
        yield (
            f"custompodresources declares {_words(stated)}, but the template requests "
            f"{_words(found)}; the declaration counts."
        )


def _sum(sets: Sequence[PodSet]) -> Resources:
    total: Amounts = {}
    for one in sets:
        for name, value in one.request:
            total[name] = total.get(name, 0) + value * one.replicas
    return tuple(sorted(total.items()))


def _words(resources: Resources) -> str:
    return ", ".join(f"{name} {format_amount(name, value)}" for name, value in resources) or "none"


# v1beta2: podSets


class DeclaredSet(Struct, frozen=True):
    """One entry of ``podSets``."""

    path: str
    replicas: int
    annotations: Mapping[str, Json] = {}


def declared_sets(
    obj: Map, inference: Inference, declared: Sequence[DeclaredSet], item: int
) -> Demand:
    """The demand declared by ``podSets``: its counts, with the templates at its paths."""
    by_path = {set_path(one.path): one for one in inference.found}
    sets: list[PodSet] = []
    pods: list[PodLabels] = []
    faults: list[Fault] = []
    for index, entry in enumerate(declared):
        where = f"podSets[{index}].path"
        if any(entry.path == one.path for one in declared[:index]):
            faults.append(Fault(where, "is given twice; each pod set needs its own path."))
        try:
            template = follow(entry.path, obj)
        except PathError as error:
            faults.append(Fault(where, f"{entry.path!r}: {error}"))
            continue
        known, reading = by_path.get(entry.path), read_template(template)
        faults += reading.faults_at(entry.path)
        faults += topology_faults(annotations_of(template), f"{entry.path}.metadata")
        faults += topology_faults(entry.annotations, f"podSets[{index}]")
        found = known or Found("", template, reading, entry.replicas)
        made = _pod_set(found, item, index, counts_pods=known is None or not inference.known)
        own = annotations_of(template) | dict(entry.annotations)
        topology = None if made.per_node else read_topology(own)
        sets.append(replace(made, path=entry.path, replicas=entry.replicas, topology=topology))
        pods.append(_labels_of(found))
    warnings = tuple(_disagreement(declared, inference))
    return Demand(tuple(sets), tuple(pods), faults=tuple(faults), warnings=warnings)


def _disagreement(declared: Sequence[DeclaredSet], inference: Inference) -> Iterable[str]:
    """A warning if the declared counts differ from those of the template."""
    if not inference.known:
        return
    stated = {one.path: one.replicas for one in declared}
    found = {set_path(one.path): one.replicas for one in inference.found if not one.implied}
    if stated != found:
        yield (
            f"podSets declares {_counts(stated)}, but the template has {_counts(found)}; "
            "the declaration counts."
        )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} at {path}" for path, number in sorted(counts.items())) or "none"
