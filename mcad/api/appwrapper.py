"""Reads an AppWrapper of the API server: the core's Workload, and the manifests to create.

``parse`` never raises. A fault of an object becomes its ``problem``: one bad manifest must not stop
the reading of all others.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from mcad.api.anti_affinity import relate
from mcad.api.catalog import Catalog
from mcad.api.evictions import read_never_preempt
from mcad.api.gangs import too_few_pods, too_small_gangs
from mcad.api.items import (
    Entry,
    Owner,
    ReadItem,
    completion_words,
    duplicates,
    locate,
    read_item,
)
from mcad.api.labels import CONTROLLERS, FINALIZER, GRANTED, HUB, PRIORITY_CLASS
from mcad.api.located_fields import clamp_count, clamp_priority, count_fault, describe, join
from mcad.api.models import AppWrapperSpec, Component, GenericItem, Wire
from mcad.api.podsets import DeclaredPods, DeclaredSet
from mcad.api.scheduling import NOTHING as NO_RULES
from mcad.api.scheduling import Scheduling, attempt_limit, read_scheduling
from mcad.api.status import is_about, read_status
from mcad.api.tolerance import read_tolerance
from mcad.api.topology import divided_groups
from mcad.api.validation import explain
from mcad.api.wire import (
    Json,
    Map,
    as_int,
    as_list,
    as_map,
    as_text,
    parse_instant,
)
from mcad.core.state.model import (
    MAX_PRIORITY,
    POD_GRACE,
    Cascade,
    Dialect,
    Item,
    PodSet,
    Problem,
    Workload,
)
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import WaitingReason

MAX_PAYLOAD = 1 << 20
"""Bytes of all manifests together; etcd takes 1.5 MiB, and status has to fit in as well."""

MAX_POD_SETS_ALL = 512
"""Pod sets of one AppWrapper. The fit test looks at each of them."""

MAX_SLOPE = 1_000_000
_SLOPE_UNIT = 1_000_000

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
"""The garbage collector's own finalizers."""


class Parsed(Struct, frozen=True):
    """A parsed AppWrapper. ``manifests`` has the template of each item as compact JSON.

    The template is the user's, with sorted keys and ``podSetInfos`` merged; labels, owner and name
    are added when it is rendered (manifest.py). ``problems`` are all that were found;
    ``workload.problem`` is the first.
    """

    workload: Workload
    manifests: tuple[bytes, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Spec:
    """The parts of a spec that are read so far."""

    dialect: Dialect
    from_json: bool = False  # canonical.py
    model: AppWrapperSpec | None = None
    scheduling: Scheduling = NO_RULES
    items: tuple[Item, ...] = ()
    sets: tuple[PodSet, ...] = ()
    manifests: tuple[bytes, ...] = ()
    deadlines: tuple[int, ...] = ()  # of the items with pods, in seconds
    graces: tuple[int, ...] = ()  # for which the pods of items may take to end, in seconds
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    quota: tuple[tuple[str, str], ...] = ()  # from the labels
    never_preempted: bool = False  # from the annotations

    def refuse(self, where: str, message: str) -> None:
        self.problems.append(Problem(WaitingReason.INVALID, where, message))


def parse(obj: Map, catalog: Catalog, *, from_json: bool = False) -> Parsed:
    """Read one AppWrapper. ``from_json``: it was decoded from JSON, so JSON can express it; this
    may not hold for the values of a YAML file."""
    meta = as_map(obj.get("metadata"))
    owner = Owner(
        uid=as_text(meta.get("uid")),
        namespace=as_text(meta.get("namespace")) or "default",
        name=as_text(meta.get("name")),
    )
    try:
        spec = _read_spec(obj.get("spec"), owner, catalog, from_json=from_json)
    except RecursionError:
        spec = _Spec(dialect_of(obj.get("spec")), model=_claim(obj.get("spec")))
        spec.refuse("spec", "is nested too deeply; flatten it.")
    if not owner.name:
        spec.refuse("metadata.name", "is required: give the AppWrapper a name.")
    if not catalog.serves(owner.namespace):
        spec.problems.append(_not_served(owner.namespace))
    spec.quota = catalog.leaves.read(as_map(meta.get("labels")))
    tolerance, warnings = read_tolerance(meta.get("annotations"), spec.dialect, catalog.tolerances)
    spec.warnings += warnings
    spec.never_preempted, warnings = read_never_preempt(
        meta.get("annotations"), owner.namespace, catalog.never_preempt
    )
    spec.warnings += warnings
    workload = _to_workload(obj, meta, owner, spec, tolerance)
    return Parsed(workload, spec.manifests, tuple(spec.problems))


def unread(obj: Map) -> Parsed:
    """An AppWrapper that could not be read for an error of ours: its identity, and what its attempt
    has on record, without its items."""
    meta, status = as_map(obj.get("metadata")), obj.get("status")
    uid, created = as_text(meta.get("uid")), parse_instant(meta.get("creationTimestamp"))
    workload = Workload(
        uid=uid,
        namespace=as_text(meta.get("namespace")) or "default",
        name=as_text(meta.get("name")),
        generation=as_int(meta.get("generation")),
        dialect=dialect_of(obj.get("spec")),
        created=created,
        payload="",
        items=(),
        sets=(),
        deleting="deletionTimestamp" in meta,
        persisted=read_status(status) if is_about(status, uid, created) else None,
    )
    return Parsed(workload, ())


def _not_served(namespace: str) -> Problem:
    message = f"AppWrappers are not served in {namespace}; an administrator can remove it from "
    return Problem(WaitingReason.NOT_SERVED, "metadata.namespace", f"{message}excludedNamespaces.")


def dialect_of(spec: Json) -> Dialect:
    """The dialect by shape: both versions are served, so apiVersion does not tell (design 6)."""
    spec = as_map(spec)
    later = spec.get("components") is not None and spec.get("resources") is None
    return Dialect.V1BETA2 if later else Dialect.V1BETA1


def _to_workload(
    obj: Map, meta: Map, owner: Owner, spec: _Spec, tolerance: FaultTolerance
) -> Workload:
    model = spec.model or AppWrapperSpec()
    scheduling = spec.scheduling
    resets = tolerance.retry_limit if spec.dialect is Dialect.V1BETA2 else 0
    status, created = obj.get("status"), parse_instant(meta.get("creationTimestamp"))
    return Workload(
        uid=owner.uid,
        namespace=owner.namespace,
        name=owner.name,
        generation=as_int(meta.get("generation")),
        dialect=spec.dialect,
        created=created,
        payload=_payload_hash(spec.manifests),
        items=spec.items,
        sets=spec.sets,
        priority=clamp_priority(model.priority or 0),
        has_priority=model.priority is not None,
        priority_label=as_text(as_map(meta.get("labels")).get(PRIORITY_CLASS)),
        slope=_slope(model.priorityslope or 0),
        min_available=scheduling.min_available,
        requeuing=scheduling.requeuing,
        run_limit=scheduling.run_limit,
        run_expected=scheduling.run_expected,
        attempt_limit=attempt_limit(spec.deadlines, resets),
        grace=max(spec.graces, default=POD_GRACE // SECOND) * SECOND,
        never_preempted=spec.never_preempted,
        tolerance=tolerance,
        suspended=model.suspend is True,
        granted=_is_granted(meta),
        managed=not model.managed_by or model.managed_by in CONTROLLERS,
        deleting="deletionTimestamp" in meta,
        cascade=_cascade(meta),
        kept_by=_kept_by(meta),
        problem=spec.problems[0] if spec.problems else None,
        quota=spec.quota,
        warnings=tuple(spec.warnings),
        persisted=read_status(status) if is_about(status, owner.uid, created) else None,
    )


def _is_granted(meta: Map) -> bool:
    """Whether it is no copy for a hub, or the copy that the hub lets start (M4)."""
    granted = as_map(meta.get("annotations")).get(GRANTED)
    return HUB not in as_map(meta.get("labels")) or granted == meta.get("uid")


def _cascade(meta: Map) -> Cascade:
    """How the garbage collector will delete the objects, from its own two finalizers."""
    finalizers = as_list(meta.get("finalizers"))
    if ORPHAN in finalizers:
        return Cascade.ORPHAN
    return Cascade.FOREGROUND if FOREGROUND in finalizers else Cascade.BACKGROUND


def _kept_by(meta: Map) -> str:
    """The first finalizer that keeps a deleted AppWrapper after its objects. While these are being
    orphaned nothing does, nor does upstream's, which the dispatcher removes."""
    finalizers = [as_text(one) for one in as_list(meta.get("finalizers"))]
    if "deletionTimestamp" not in meta or ORPHAN in finalizers:
        return ""
    return next((one for one in finalizers if one not in (FOREGROUND, FINALIZER)), "")


def _slope(value: float) -> int:
    """Priority slope in millionths per second; 0 for a value that is refused anyway, like NaN."""
    return round(value * _SLOPE_UNIT) if abs(value) <= MAX_SLOPE else 0


def _payload_hash(manifests: Sequence[bytes]) -> str:
    """SHA-256 of the canonical JSON array of everything that would be created."""
    return hashlib.sha256(b"[" + b",".join(manifests) + b"]").hexdigest()


def _read_spec(value: Json, owner: Owner, catalog: Catalog, *, from_json: bool) -> _Spec:
    spec = _Spec(dialect_of(value), from_json)
    if not isinstance(value, dict):
        spec.refuse("spec", f"must be a map, not {describe(value)}.")
        return spec
    try:
        spec.model = AppWrapperSpec.model_validate(value)
    except ValidationError as error:
        for place, message in explain(error):
            spec.refuse(_field_path(place), message)
        spec.model = _claim(value)
        return spec
    _check_rules(spec.model, spec)
    spec.warnings += _ignored(spec.model)
    keeps = spec.model.scale_up is not None and spec.model.scale_up.keep_pods is True
    entries = [replace(one, keeps_pods=keeps) for one in _entries(spec.model, spec)]
    _read_items(entries, owner, catalog, spec)
    return spec


def _claim(value: Json) -> AppWrapperSpec:
    """The ``managedBy`` of a spec: it counts even if the rest cannot be read."""
    return AppWrapperSpec(managedBy=as_text(as_map(value).get("managedBy")) or None)


def _check_rules(model: AppWrapperSpec, spec: _Spec) -> None:
    """Check what the types of the models cannot express."""
    if abs(model.priority or 0) > MAX_PRIORITY:
        spec.refuse("spec.priority", f"must be within {MAX_PRIORITY} of 0.")
    if not abs(model.priorityslope or 0) <= MAX_SLOPE:  # NaN is not <= anything
        spec.refuse("spec.priorityslope", f"must be a number within {MAX_SLOPE} of 0.")
    spec.scheduling = read_scheduling(model.scheduling_spec)
    for fault in spec.scheduling.faults:
        spec.refuse(f"spec.{fault.path}", fault.message)
    spec.warnings += [f"spec.{warning}" for warning in spec.scheduling.warnings]


def _entries(model: AppWrapperSpec, spec: _Spec) -> Iterator[Entry]:
    """The wrapped objects in either dialect."""
    if model.resources is not None and model.components is not None:
        spec.refuse("spec", "has both resources and components; remove one of them.")
        return
    if model.resources is None and model.components is None:
        spec.refuse("spec", "has neither resources nor components: list the objects to wrap.")
        return
    generic = (model.resources.generic_items or []) if model.resources else []
    components = model.components or []
    where = "spec.components" if model.resources is None else "spec.resources.GenericItems"
    if not generic and not components:
        spec.refuse(where, "is empty: list the objects to wrap.")
    for i, item in enumerate(generic):
        yield _generic_entry(item, f"{where}[{i}]", spec)
    for i, component in enumerate(components):
        yield _component_entry(component, f"{where}[{i}]", spec)


def _generic_entry(item: GenericItem, base: str, spec: _Spec) -> Entry:
    declared = item.custompodresources or []
    for i, entry in enumerate(declared):
        if message := count_fault(entry.replicas):
            spec.refuse(f"{base}.custompodresources[{i}].replicas", message)
    return Entry(
        base=base,
        key="generictemplate",
        template=item.generictemplate,
        pods=tuple(
            DeclaredPods(clamp_count(one.replicas), one.requests, one.limits or {})
            for one in declared
        ),
        completion=completion_words(item.completionstatus),
        from_json=spec.from_json,
    )


def _component_entry(component: Component, base: str, spec: _Spec) -> Entry:
    declared = []
    for i, entry in enumerate(component.pod_sets or []):
        replicas = 1 if entry.replicas is None else entry.replicas
        if message := count_fault(replicas):
            spec.refuse(f"{base}.podSets[{i}].replicas", message)
        declared.append(DeclaredSet(entry.path, clamp_count(replicas), entry.annotations or {}))
    return Entry(
        base=base,
        key="template",
        template=component.template,
        sets=tuple(declared),
        infos=tuple(component.pod_set_infos or ()),
        from_json=spec.from_json,
    )


def _read_items(entries: Sequence[Entry], owner: Owner, catalog: Catalog, spec: _Spec) -> None:
    """Read every entry. Items are kept only if all of them have names: their numbers must be those
    of the entries."""
    reads = [read_item(entry, index, owner, catalog) for index, entry in enumerate(entries)]
    for read in reads:
        spec.problems += read.problems
        spec.warnings += read.warnings
    named = [
        (f"{entry.base}.{entry.key}", read.item)
        for entry, read in zip(entries, reads, strict=True)
        if read.item is not None
    ]
    spec.problems += duplicates(named)
    if len(named) == len(entries):
        spec.items = tuple(item for _, item in named)
        pods = [one for read in reads for one in read.pods]
        spec.sets = relate([one for read in reads for one in read.sets], pods)
        for one, fault in divided_groups(spec.sets):
            spec.refuse(locate(entries[one.item], fault.path), fault.message)
        spec.manifests = tuple(read.manifest for read in reads)
        spec.deadlines = tuple(read.deadline for read in reads if any(map(_has_pods, read.sets)))
        spec.graces = tuple(read.grace for read in reads if read.grace is not None)
        _check_sizes(reads, spec)
    if spec.items and not spec.problems:
        few = too_few_pods(spec.scheduling.min_available, spec.items, spec.sets)
        spec.warnings += [f"spec.{warning}" for warning in few]
        spec.warnings += too_small_gangs(spec.items, spec.sets, spec.manifests)


def _has_pods(pod_set: PodSet) -> bool:
    return pod_set.per_node or pod_set.replicas > 0


def _check_sizes(reads: Sequence[ReadItem], spec: _Spec) -> None:
    size = sum(len(read.manifest) for read in reads)
    if size > MAX_PAYLOAD:
        message = f"wraps {size} bytes; {MAX_PAYLOAD} are allowed. Split the AppWrapper."
        spec.refuse("spec", message)
    if len(spec.sets) > MAX_POD_SETS_ALL:
        message = f"has {len(spec.sets)} pod sets; {MAX_POD_SETS_ALL} are allowed."
        spec.refuse("spec", message)


def _ignored(model: AppWrapperSpec) -> Iterator[str]:
    """Fields that old manifests have, and that have no effect."""
    resources = model.resources
    if resources is not None:
        if resources.items is not None:
            yield "spec.resources.Items: ignored; wrap these objects as GenericItems."
        for i, item in enumerate(resources.generic_items or []):
            if item.metadata is not None:
                where = f"spec.resources.GenericItems[{i}].metadata"
                yield f"{where}: ignored; the metadata of the object is in generictemplate."
    if model.service:
        yield "spec.service: ignored; wrap a Service as an item."
    if model.selector:
        yield "spec.selector: ignored."
    if model.sched_spec:
        yield "spec.schedSpec: ignored; use schedulingSpec."
    if model.scheduling_spec and model.scheduling_spec.node_selector:
        yield "spec.schedulingSpec.nodeSelector: ignored; set it in the pod templates."
    if model.scheduling_spec and model.scheduling_spec.cluster_scheduling:
        yield "spec.schedulingSpec.clusterScheduling: ignored; there is only one cluster."
    if model.scheduling_spec and model.scheduling_spec.dispatching_window:
        yield "spec.schedulingSpec.dispatchingWindow: ignored; use suspend."
    yield from _unknown(model, "spec")


def _unknown(value: Any, path: str) -> Iterator[str]:
    """Fields that no model knows. The API server drops them; only a file can have them."""
    if isinstance(value, Wire):
        for name in value.model_extra or ():
            yield f"{join(path, name)}: unknown field, ignored."
        for name, alias in _nesting(type(value)):
            inner = getattr(value, name)
            if inner is not None:
                yield from _unknown(inner, join(path, alias))
    elif isinstance(value, list):
        for i, element in enumerate(value):
            if isinstance(element, Wire):
                yield from _unknown(element, f"{path}[{i}]")


@cache
def _nesting(model: type[Wire]) -> tuple[tuple[str, str], ...]:
    """The fields of a model that may hold other models, with their names in the API."""
    return tuple(
        (name, field.alias or name)
        for name, field in model.model_fields.items()
        if _holds_models(field.annotation)
    )


def _holds_models(annotation: Any) -> bool:
    is_model = isinstance(annotation, type) and issubclass(annotation, Wire)
    return is_model or any(map(_holds_models, get_args(annotation)))


def _field_path(place: Sequence[int | str]) -> str:
    """``spec.resources.GenericItems[0].replicas``."""
    return "spec" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
