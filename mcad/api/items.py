"""Reads one wrapped object: its reference, its demand and its faults."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from mcad.api import canonical, labels
from mcad.api.anti_affinity import PodLabels
from mcad.api.catalog import BUILT_IN, WELL_KNOWN, Catalog, Resource
from mcad.api.durations import clamp_limit
from mcad.api.live import suspended_by, tells_end
from mcad.api.located_fields import Fault, describe, join, shorten
from mcad.api.models import PodSetInfo
from mcad.api.podcheck import check_quantities
from mcad.api.podsetinfos import merge_infos
from mcad.api.podsets import (
    DeclaredPods,
    DeclaredSet,
    Demand,
    declared_demand,
    declared_sets,
    infer,
    inferred_demand,
)
from mcad.api.podspec import CLAIMS
from mcad.api.templates import find_templates, set_path
from mcad.api.ttl import ttl_of
from mcad.api.wire import Json, Map, as_int, as_map, as_text
from mcad.api.wrapped_kinds import is_dangerous, makes_pods
from mcad.core.state.model import Item, ObjectRef, PodSet, Problem
from mcad.core.state.spelling import did_you_mean
from mcad.core.state.waiting_reason import WaitingReason

MAX_NAME = 253
MAX_GENERATED_NAME = 63

MAX_NESTING = 200
"""Levels of maps and lists in a manifest. Real ones have some 30; the API server takes 10,000, and
what is far too deep is not even read in full (mcad/kube/decode.py)."""

_SIMILAR = 0.8  # higher than the default: the version counts

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")
_API_VERSION = re.compile(r"(?:([^/\s]+)/)?([^/\s]+)")


class Entry(Struct, frozen=True):
    """One element of GenericItems or of components.

    ``base`` is its field path and ``key`` that of the template in it. ``from_json``: it was
    decoded from JSON.
    """

    base: str
    key: str
    template: Json
    pods: tuple[DeclaredPods, ...] = ()
    sets: tuple[DeclaredSet, ...] = ()
    infos: tuple[PodSetInfo, ...] = ()
    completion: tuple[str, ...] = ()
    from_json: bool = False
    keeps_pods: bool = False  # spec.scaleUp.keepPods


class Owner(Struct, frozen=True):
    """The AppWrapper of an item."""

    uid: str
    namespace: str
    name: str


@dataclass(slots=True)
class ReadItem:
    """The result of reading one entry; ``item`` is None if the object has no usable name.

    ``pods`` has the labels and terms of each set. ``deadline`` is when it ends by itself, in
    seconds from its creation; 0 if that is not known. ``grace`` is the termination grace period of
    its pods in seconds, None if it has no template.
    """

    item: Item | None = None
    manifest: bytes = b""
    sets: tuple[PodSet, ...] = ()
    pods: tuple[PodLabels, ...] = ()
    deadline: int = 0
    grace: int | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, where: str, message: str, kind: WaitingReason = WaitingReason.INVALID) -> None:
        """Note a problem."""
        self.problems.append(Problem(kind, where, message))


def read_item(entry: Entry, index: int, owner: Owner, catalog: Catalog) -> ReadItem:
    """Read item number ``index``."""
    read = ReadItem()
    where = f"{entry.base}.{entry.key}"
    template = entry.template
    if not isinstance(template, dict):
        what = "is required" if template is None else f"must be a map, not {describe(template)}"
        read.refuse(where, f"{what}: put the object to create here.")
        return read
    served = _find_kind(template, where, catalog, read)
    meta = template.get("metadata")
    if meta is not None and not isinstance(meta, dict):
        read.refuse(f"{where}.metadata", f"must be a map, not {describe(meta)}.")
    name = _name(as_map(meta), index, owner, where, read)
    for fault in _check_metadata(as_map(meta), owner):
        read.refuse(f"{where}.metadata.{fault.path}", fault.message)
    if served is None:
        return read
    if not makes_pods(served.group, served.resource):
        entry = _without_declaration(entry, served.kind, read)
    demand, merged = _demand(entry, template, served, index, catalog)
    for fault in demand.faults:
        read.refuse(locate(entry, fault.path), fault.message)
    for fault in _check_labels(merged, index, owner):
        read.refuse(f"{where}.{fault.path}", fault.message)
    if any(CLAIMS in one.unmodelled for one in demand.sets) and not catalog.ignores_claims:
        message = "its pods have resourceClaims, and mcad does not check whether devices are free. "
        message += "Request devices as resources, or ask an administrator to set "
        message += "ignoreResourceClaims."
        read.refuse(where, message, WaitingReason.UNSUPPORTED_DRA)
    read.warnings += [f"{entry.base}: {warning}" for warning in demand.warnings]
    switch = suspended_by(merged, served.group, served.kind)
    if switch is not None:
        message = f"{switch.field} {switch.says}: its controller makes no pods until a client "
        message += "resumes it; remove the field."
        read.warnings.append(f"{where}.{message}")
    if name:
        ref = ObjectRef(
            served.group, served.version, served.resource, served.kind, owner.namespace, name
        )
        read.item = Item(
            ref,
            completion=entry.completion,
            guessed=demand.guessed,
            tells_end=tells_end(served.group, served.kind),
            suspended=switch.field if switch is not None else "",
            ttl=ttl_of(merged, served.group, served.kind),
        )
        read.sets, read.pods = demand.sets, demand.pods
        read.deadline = _deadline(merged, served)
        read.grace = demand.grace
        read.manifest = _to_bytes(merged, where, read, from_json=entry.from_json)
    return read


def _alike(given: str, catalog: Catalog) -> str:
    """A question that names the kind that was probably meant, of those that may be wrapped."""
    known = tuple(
        f"{one.group}/{one.version} {one.kind}".lstrip("/")
        for one in WELL_KNOWN
        if catalog.wrapped(one.group, one.resource)
        and catalog.find(one.group, one.version, one.kind) is not None
    )
    return _most_alike(given, known)


@lru_cache(256)
def _most_alike(given: str, known: tuple[str, ...]) -> str:
    """Kept, because many AppWrappers may have the same fault."""
    return did_you_mean(given, known, similar=_SIMILAR)


def _find_kind(template: Map, where: str, catalog: Catalog, read: ReadItem) -> Resource | None:
    """The served kind of the template; every reason why it may not be wrapped is refused."""
    version = _API_VERSION.fullmatch(as_text(template.get("apiVersion")))
    kind = as_text(template.get("kind"))
    if version is None:
        given = describe(template.get("apiVersion"))
        read.refuse(f"{where}.apiVersion", f"must be like v1 or apps/v1, not {given}.")
    if not kind:
        read.refuse(f"{where}.kind", "is required: name the kind of the object.")
    if version is None or not kind:
        return None
    group = version[1] or ""
    if group == labels.GROUP and kind == labels.KIND:
        read.refuse(f"{where}.kind", "an AppWrapper cannot wrap another one; wrap its items.")
        return None
    served = catalog.find(group, version[2], kind)
    if served is None:
        name, remedy = f"{version[0]} {kind}", "install its CRD, or correct apiVersion and kind."
        if group in BUILT_IN:
            remedy = "correct apiVersion and kind, or enable this API in Kubernetes."
        message = f"{name} is not installed in the cluster; {remedy} {_alike(name, catalog)}"
        read.refuse(f"{where}.kind", shorten(message.rstrip(), 400), WaitingReason.NOT_INSTALLED)
    elif not served.namespaced:
        read.refuse(
            f"{where}.kind", f"{kind} is cluster-scoped; only namespaced kinds can be wrapped."
        )
    elif not catalog.wrapped(group, served.resource):
        read.refuse(f"{where}.kind", _not_wrapped(served), WaitingReason.NOT_WRAPPED)
    return served


def _not_wrapped(served: Resource) -> str:
    """Which value of the chart allows the kind, and what to do where it carries rights."""
    group, plural = served.group, served.resource
    name = f"{plural}.{group}" if group else plural
    value = f'apiGroup: "{group}", resources: {{{plural}: {served.kind}}}'
    told, remedy = f"{name} may not be wrapped", ""
    if is_dangerous(group, plural):
        value, remedy = f"{value}, dangerous: true", " It carries rights: apply it before instead."
    return (
        f"{told}; an administrator can allow it with the chart's value "
        f"wrappedResources: {{{value}}}.{remedy}"
    )


def _name(meta: Map, index: int, owner: Owner, where: str, read: ReadItem) -> str:
    """The name of the object, "" if it has no usable one."""
    name, prefix = meta.get("name"), meta.get("generateName")
    if name in (None, "") and isinstance(prefix, str) and prefix:
        # The same name after a restart, so that a repeated POST finds the object of the first (P2).
        digest = labels.short_hash(f"{owner.uid}/{index}")
        name, key = prefix[: MAX_GENERATED_NAME - len(digest)] + digest, "generateName"
    else:
        key = "name"
    if name in (None, ""):
        read.refuse(f"{where}.metadata.name", "is required: give the object a name.")
    elif not isinstance(name, str):
        message = f"must be a string, not {describe(name)}; quote it."
        read.refuse(f"{where}.metadata.name", message)
    elif len(name) > MAX_NAME:
        message = f"has {len(name)} characters; {MAX_NAME} are allowed."
        read.refuse(f"{where}.metadata.{key}", message)
    elif not _DNS_SUBDOMAIN.fullmatch(name):
        message = (
            f"{shorten(name)!r} is not a DNS name: use lower case letters, digits, '-' and '.'."
        )
        read.refuse(f"{where}.metadata.{key}", message)
    else:
        return name
    return ""


def _check_metadata(meta: Map, owner: Owner) -> Iterator[Fault]:
    namespace = meta.get("namespace")
    if namespace not in (None, "", owner.namespace):
        message = f"must be absent or {owner.namespace!r}: items are created in the namespace of "
        message += "their AppWrapper."
        yield Fault("namespace", message)
    if meta.get("ownerReferences"):
        yield Fault("ownerReferences", "must be absent: the AppWrapper owns the object.")
    if meta.get("finalizers"):
        yield Fault("finalizers", "must be absent: they would keep a deleted object alive.")
    yield from _string_maps(meta)


def _string_maps(meta: Map) -> Iterator[Fault]:
    for key in ("labels", "annotations"):
        values = meta.get(key)
        if values is None:
            continue
        if not isinstance(values, dict):
            yield Fault(key, f"must be a map, not {describe(values)}.")
            continue
        for name, value in values.items():
            if not isinstance(value, str):
                yield Fault(f"{key}.{name}", f"must be a string, not {describe(value)}; quote it.")


def _check_labels(template: Map, index: int, owner: Owner) -> Iterator[Fault]:
    """Check the labels that only the dispatcher sets, on the object and in its pod templates."""
    spots = [("", template), *((spot.path, spot.template) for spot in find_templates(template))]
    allowed = {labels.APPWRAPPER: labels.label_value(owner.name), labels.ITEM: str(index)}
    for path, holder in dict(spots).items():
        meta = holder.get("metadata")
        where = join(path, "metadata")
        if path and meta is not None and not isinstance(meta, dict):
            yield Fault(where, f"must be a map, not {describe(meta)}.")
        if path:
            for fault in _string_maps(as_map(meta)):
                yield Fault(f"{where}.{fault.path}", fault.message)
        given = labels.labels_of(holder)
        for key in labels.OURS:
            if key in given and given[key] != allowed.get(key):
                yield Fault(f"{where}.labels.{key}", "is set by the dispatcher; remove it.")


def _without_declaration(entry: Entry, kind: str, read: ReadItem) -> Entry:
    """The entry without declared pods: this kind makes none, so they would hold unused room."""
    for name, declared in (("custompodresources", entry.pods), ("podSets", entry.sets)):
        if declared:
            read.warnings.append(f"{entry.base}.{name}: ignored; a {kind} has no pods.")
    return replace(entry, pods=(), sets=())


def _demand(
    entry: Entry, template: Map, served: Resource, index: int, catalog: Catalog
) -> tuple[Demand, Map]:
    """The demand, and the template merged with podSetInfos and the configuration's additions."""
    inference = infer(template, served.group, served.kind)
    paths = [one.path for one in entry.sets] or [
        set_path(found.path) for found in inference.found if not found.implied
    ]
    completed, faults = merge_infos(template, paths, entry.infos)
    if makes_pods(served.group, served.resource):
        pods = [found.template for found in inference.found]
        additions = catalog.additions.keeping(keeps_pods=entry.keeps_pods)
        completed, more = additions.add(completed, paths, pods)
        faults += more
    if completed is not template:
        inference = infer(completed, served.group, served.kind)
    if entry.pods:
        demand = declared_demand(completed, inference, entry.pods, index)
        faults += _check_declared(entry.pods)
    elif entry.sets:
        demand = declared_sets(completed, inference, entry.sets, index)
    else:
        demand = inferred_demand(completed, inference, index)
    demand = replace(demand, grace=inference.grace, faults=(*faults, *demand.faults))
    return demand, completed


def _deadline(template: Map, served: Resource) -> int:
    """The ``activeDeadlineSeconds`` of a Job; a suspended Job has no deadline."""
    spec = as_map(template.get("spec"))
    if (served.group, served.kind) != ("batch", "Job") or spec.get("suspend") is True:
        return 0
    return clamp_limit(as_int(spec.get("activeDeadlineSeconds")))


def _check_declared(pods: Sequence[DeclaredPods]) -> Iterator[Fault]:
    for i, entry in enumerate(pods):
        where = f"custompodresources[{i}]"
        yield from check_quantities(dict(entry.requests), f"{where}.requests")
        yield from check_quantities(dict(entry.limits), f"{where}.limits")


def locate(entry: Entry, path: str) -> str:
    """The full field path of a fault, in the template (``template`` in its path) or beside it."""
    head, _, rest = path.partition(".")
    return join(f"{entry.base}.{entry.key}", rest) if head == "template" else f"{entry.base}.{path}"


def _to_bytes(template: Map, where: str, read: ReadItem, *, from_json: bool) -> bytes:
    """The manifest in the canonical form that is kept and hashed."""
    try:
        text = canonical.encode(template, from_json=from_json)
    except (TypeError, ValueError):  # only from a file: dates, binary data, keys of mixed types
        read.refuse(where, "holds a value that JSON cannot express; quote dates and the like.")
        return b""
    if canonical.nests_deeper(text, MAX_NESTING):
        read.refuse(where, f"is nested too deeply; {MAX_NESTING} levels are allowed, flatten it.")
    return text


def completion_words(text: str | None) -> tuple[str, ...]:
    """Condition types like ``Complete, Failed`` in the form that the core compares."""
    words = (word.strip().lower() for word in (text or "").split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def duplicates(items: Sequence[tuple[str, Item]]) -> Iterator[Problem]:
    """A problem for each item that is the same object as an earlier one."""
    first: dict[tuple[str, str, str], str] = {}
    for where, item in items:
        key = (item.ref.group, item.ref.kind, item.ref.name)
        if key in first:
            message = f"{item.ref.kind} {item.ref.name!r} is wrapped twice, first in {first[key]}."
            yield Problem(WaitingReason.INVALID, where, message)
        first.setdefault(key, where)
