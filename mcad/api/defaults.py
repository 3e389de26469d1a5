"""Defaults that the API server adds to pods before kube-scheduler sees them (protocol C5).

They are those of its admission plugins LimitRanger, RuntimeClass and Priority, and with the last
the priority of an AppWrapper without one. Live pods have them,
templates do not: without them the pods would be larger than the room that was found for them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from mcad.api.appwrapper import Parsed
from mcad.api.located_fields import clamp_priority
from mcad.api.podsets import infer, template_of
from mcad.api.podspec import (
    Amounts,
    amounts,
    container_requests,
    effective_request,
    placement,
    pod_level,
    tolerations_of,
)
from mcad.api.wire import Json, Map, as_int, as_list, as_map, as_text
from mcad.core.state.model import Constraint, PodSet, PrioritySource, Toleration, Workload

PRIORITY_CLASS, WORKLOAD_PRIORITY_CLASS = "PriorityClass", "WorkloadPriorityClass"

_NAMES_A_CLASS = b'"runtimeClassName":"'
_NEVER = "Never"
_SAYS_NEVER = b'"preemptionPolicy":"Never"'
_NAMES_PRIORITY = b'"priorityClassName":"'
_MARKS = (_NAMES_A_CLASS, _SAYS_NEVER, _NAMES_PRIORITY)
_OF_A_CLASS = b'ClassName":"'


class RuntimeClass(Struct, frozen=True):
    """What a RuntimeClass adds to its pods: overhead, node selector and tolerations."""

    overhead: tuple[tuple[str, int], ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def narrowed(self, constraint: Constraint) -> Constraint:
        """The constraint of a pod of this class."""
        selector = dict(constraint.selector) | dict(self.selector)
        more = tuple(one for one in self.tolerations if one not in constraint.tolerations)
        return replace(
            constraint,
            selector=tuple(sorted(selector.items())),
            tolerations=(*constraint.tolerations, *more),
        )


class PriorityClass(Struct, frozen=True):
    """The relevant part of a PriorityClass: ``never`` is ``preemptionPolicy: Never``.

    ``everywhere``: it is the global default, for pods that name no class.
    """

    never: bool = False
    everywhere: bool = False
    value: int = 0


def read_priority_class(obj: Map) -> PriorityClass:
    """Read a PriorityClass."""
    never, everywhere = obj.get("preemptionPolicy") == _NEVER, obj.get("globalDefault") is True
    return PriorityClass(never, everywhere, class_value(obj))


def class_value(obj: Map) -> int:
    """The ``value`` of a PriorityClass or a WorkloadPriorityClass."""
    return clamp_priority(as_int(obj.get("value")))


def read_limit_range(obj: Map) -> Amounts:
    """The default request of a container: ``defaultRequest``, else ``default``.

    Limits for pods and claims, minima and maxima only refuse pods; if a maximum becomes a default,
    the server writes it into the LimitRange itself.
    """
    found: Amounts = {}
    for limit in as_list(as_map(obj.get("spec")).get("limits")):
        if as_text(as_map(limit).get("type")) == "Container":
            given = amounts(limit.get("default")) | amounts(limit.get("defaultRequest"))
            found = _larger(found, given)
    return found


def read_runtime_class(obj: Map) -> RuntimeClass:
    """Read a RuntimeClass."""
    scheduling = as_map(obj.get("scheduling"))
    selector = as_map(scheduling.get("nodeSelector"))
    return RuntimeClass(
        tuple(sorted(amounts(as_map(obj.get("overhead")).get("podFixed")).items())),
        tuple(sorted((key, one) for key, one in selector.items() if isinstance(one, str))),
        tolerations_of(scheduling.get("tolerations")),
    )


@dataclass(slots=True)
class PodDefaults:
    """The present LimitRanges by namespace, RuntimeClasses and PriorityClasses by name.

    With several LimitRanges in a namespace, the server may apply any default: the largest counts.
    ``workload_priorities`` are the values of Kueue's WorkloadPriorityClasses by name, None where
    they are not served.
    """

    _ranges: dict[str, dict[str, Amounts]] = field(default_factory=dict)
    _classes: dict[str, RuntimeClass] = field(default_factory=dict)
    _priorities: dict[str, PriorityClass] = field(default_factory=dict)
    workload_priorities: dict[str, int] | None = None

    def put_range(self, namespace: str, uid: str, defaults: Amounts) -> bool:
        """Add or change a LimitRange; return whether that makes a difference."""
        before = self.of_namespace(namespace)
        self._ranges.setdefault(namespace, {})[uid] = defaults
        return self.of_namespace(namespace) != before

    def drop_range(self, namespace: str, uid: str) -> bool:
        """Remove a LimitRange; return whether that makes a difference."""
        before = self.of_namespace(namespace)
        ranges = self._ranges.get(namespace, {})
        ranges.pop(uid, None)
        if not ranges:
            self._ranges.pop(namespace, None)
        return self.of_namespace(namespace) != before

    def put_class(self, name: str, found: RuntimeClass) -> bool:
        """Add or change a RuntimeClass; return whether that makes a difference."""
        known = self._classes.get(name)
        self._classes[name] = found
        return known != found

    def drop_class(self, name: str) -> bool:
        """Remove a RuntimeClass; return whether that makes a difference."""
        return self._classes.pop(name, None) is not None

    def put_priority(self, name: str, found: PriorityClass) -> bool:
        """Add or change a PriorityClass; return whether that makes a difference. Its value makes
        none to those that have a priority of it already."""
        is_new, known = name not in self._priorities, self._priorities.get(name, PriorityClass())
        self._priorities[name] = found
        return is_new or known.never != found.never or (found.never and known != found)

    def drop_priority(self, name: str) -> bool:
        """Remove a PriorityClass; return whether that makes a difference."""
        known = self._priorities.pop(name, None)
        return known is not None and known.never

    def of_namespace(self, namespace: str) -> Amounts:
        """The default request of a container in the namespace."""
        found: Amounts = {}
        for one in self._ranges.get(namespace, {}).values():
            found = _larger(found, one)
        return found

    def concerns(self, work: Workload, manifests: Iterable[bytes]) -> bool:
        """Whether any default may change the pods of these manifests (compact JSON)."""
        if self._ranges.get(work.namespace):
            return True
        found = tuple(manifests)
        return names_a_class(found) or self._may_never_preempt(found)

    def concerns_more(self, work: Workload) -> bool:
        """Whether defaults may change its pods without being named in its manifests."""
        return (
            bool(self._ranges.get(work.namespace))
            or bool(work.priority_label)
            or any(one.everywhere for one in self._priorities.values())
        )

    def completed(self, parsed: Parsed) -> Parsed:
        """A parsed AppWrapper with the defaults that its pods will get."""
        work, manifests = parsed.workload, parsed.manifests
        if self.concerns(work, manifests):
            return replace(parsed, workload=self.with_defaults(work, manifests))
        source = self._priority_source(work, manifests)
        if source is None:
            return parsed
        return replace(parsed, workload=replace(work, priority_source=source))

    def with_defaults(self, work: Workload, manifests: Sequence[bytes]) -> Workload:
        """The AppWrapper with the defaults that its pods will get, whatever it had before.

        The manifests do not change, so the hash of the payload stays the same (P8).
        """
        sets = list(work.sets)
        for item, manifest in enumerate(manifests):
            own = [at for at, one in enumerate(sets) if one.item == item and one.path]
            obj = as_map(json.loads(manifest)) if own else {}
            for at in own:
                template = template_of(obj, work.items[item].ref, sets[at])
                if template is not None:
                    sets[at] = self._with_defaults(sets[at], template, work.namespace)
        return replace(
            work,
            sets=tuple(sets),
            never_preempts=self._never_preempts(work, manifests),
            priority_source=self._priority_source(work, manifests),
        )

    def _priority_source(self, work: Workload, manifests: Sequence[bytes]) -> PrioritySource | None:
        """Where the priority of an AppWrapper without ``spec.priority`` comes from, as Kueue has it
        (ExtractPriority of pkg/controller/jobframework, 0.14): its label, else the first pod set
        that names a class, else the global default. None: from nowhere, or the class that is named
        does not exist yet."""
        if work.has_priority:
            return None
        if work.priority_label and self.workload_priorities is not None:
            value = self.workload_priorities.get(work.priority_label)
            if value is None:
                return None
            return PrioritySource(WORKLOAD_PRIORITY_CLASS, work.priority_label, value)
        if name := first_priority_class(work, manifests):
            found = self._priorities.get(name)
            return None if found is None else PrioritySource(PRIORITY_CLASS, name, found.value)
        return self._default_priority()

    def _default_priority(self) -> PrioritySource | None:
        """The global default; of several that of the least value counts, as in Kubernetes."""
        least = min(
            ((one.value, name) for name, one in self._priorities.items() if one.everywhere),
            default=None,
        )
        if least is None:
            return None
        return PrioritySource(PRIORITY_CLASS, least[1], least[0], is_default=True)

    def _never_preempts(self, work: Workload, manifests: Sequence[bytes]) -> bool:
        """Whether nothing may be evicted for the AppWrapper: all of its pods have the policy Never.

        A pod without that policy may preempt in kube-scheduler as well; pods that an operator adds
        on its own do not count.
        """
        if not self._may_never_preempt(manifests):
            return False
        answers = {
            self._is_never(as_map(template.get("spec")))
            for item, manifest in enumerate(manifests)
            for template in _templates(work, item, manifest)
        }
        return answers == {True}

    def _may_never_preempt(self, manifests: Iterable[bytes]) -> bool:
        """Whether a pod of these manifests (compact JSON) may have the policy Never."""
        never = [name for name, one in self._priorities.items() if one.never]
        if any(self._priorities[name].everywhere for name in never):
            return True
        return any(
            _SAYS_NEVER in manifest or any(names_priority([manifest], name) for name in never)
            for manifest in manifests
        )

    def _is_never(self, spec: Map) -> bool:
        """The policy as admission reads it: of the pod, else its class, else the global default."""
        if given := as_text(spec.get("preemptionPolicy")):
            return given == _NEVER
        if name := as_text(spec.get("priorityClassName")):
            return self._priorities.get(name, PriorityClass()).never
        return any(one.never and one.everywhere for one in self._priorities.values())

    def _with_defaults(self, one: PodSet, template: Map, namespace: str) -> PodSet:
        spec = as_map(template.get("spec"))
        named = self._classes.get(as_text(spec.get("runtimeClassName")), RuntimeClass())
        completed = _completed(spec, self.of_namespace(namespace), dict(named.overhead))
        constraint = named.narrowed(placement(template).constraint)
        return replace(one, request=effective_request(completed), constraint=constraint)


def may_have_defaults(manifests: Iterable[bytes]) -> bool:
    """Whether these manifests (compact JSON) name a class, or say themselves what one would say."""
    return any(map(_has_mark, manifests))


def _has_mark(manifest: bytes) -> bool:
    if not (_OF_A_CLASS in manifest or _SAYS_NEVER in manifest):
        return False  # of nearly all, after two searches instead of three
    return any(mark in manifest for mark in _MARKS)


def names_a_class(manifests: Iterable[bytes]) -> bool:
    """Whether a template in these manifests (compact JSON) names a RuntimeClass."""
    return any(_NAMES_A_CLASS in manifest for manifest in manifests)


def names_priority(manifests: Iterable[bytes], name: str) -> bool:
    """Whether a template in these manifests (compact JSON) names this PriorityClass."""
    named = f'"priorityClassName":"{name}"'.encode()
    return any(named in manifest for manifest in manifests)


def first_priority_class(work: Workload, manifests: Sequence[bytes]) -> str:
    """The PriorityClass of the first pod set that names one, "" if none does."""
    for item, manifest in enumerate(manifests):
        if _NAMES_PRIORITY not in manifest:
            continue
        sets = [one for one in work.sets if one.item == item]
        for template in _templates_of(work, item, manifest, sets):
            if name := as_text(as_map(template.get("spec")).get("priorityClassName")):
                return name
    return ""


def _templates(work: Workload, item: int, manifest: bytes) -> list[Map]:
    """The pod templates of an item in its manifest, without those of sets that have no pods."""
    sets = [one for one in work.sets if one.item == item and (one.replicas or one.per_node)]
    return _templates_of(work, item, manifest, sets)


def _templates_of(work: Workload, item: int, manifest: bytes, sets: Sequence[PodSet]) -> list[Map]:
    obj, ref = as_map(json.loads(manifest)) if sets else {}, work.items[item].ref
    found = [template_of(obj, ref, one) for one in sets if one.path]
    if any(not one.path for one in sets):  # declared by their numbers: the manifest tells the rest
        found += [one.template for one in infer(obj, ref.group, ref.kind).found if not one.implied]
    return [one for one in found if one is not None]


def _completed(spec: Map, defaults: Amounts, overhead: Amounts) -> Map:
    """The requests of the pod spec as it will be stored; a limit has become a request already."""
    level = pod_level(spec)
    whole = {"resources": {"requests": _quantities(level)}} if level else {}
    lists = {
        key: [_container(one, defaults) for one in as_list(spec.get(key))]
        for key in ("containers", "initContainers")
    }
    return {"overhead": _quantities(overhead)} | spec | lists | whole


def _container(container: Json, defaults: Amounts) -> Json:
    if not isinstance(container, dict):
        return container
    requests = _quantities(defaults | container_requests(container))
    return container | {"resources": {"requests": requests}}


def _quantities(read: Amounts) -> Map:
    return {name: f"{size}m" for name, size in read.items()}


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one | other}
