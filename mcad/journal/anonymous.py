"""Writes a copy of a journal without names, for a bug report.

Each name is replaced by one pseudonym with the same order, so that sorting by name gives the same
decisions. Kinds, resources, amounts, times, states and reasons stay; texts are removed. The copied
events are decided again, and the copy contains these decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from mcad.core.state.records import replace
from mcad.core.state.units import Instant
from mcad.journal.header import Header
from mcad.journal.reader import Begin, Gap, Session
from mcad.journal.replay import drive
from mcad.journal.restart import present
from mcad.journal.writer import Journal, Limits

TEXT = "(text)"
_PUBLIC_DOMAINS = ("kubernetes.io", "k8s.io", "nvidia.com", "amd.com", "codeflare.dev")
_PUBLIC_VALUES = frozenset({"", "true", "false", "0.0.0.0", "::"})  # noqa: S104 - nothing is bound

Rule = Callable[["Names", str], str]


class Names:
    """The pseudonym of each name: its rank among all names."""

    def __init__(self, found: Iterable[str]) -> None:
        ordered = sorted(set(found))
        width = len(str(len(ordered)))
        self._new = {name: f"n{at:0{width}}" for at, name in enumerate(ordered)}

    def of(self, name: str) -> str:
        """The pseudonym; "" stays."""
        return self._new[name] if name else ""


class _Collected(Names):
    """Collects all names."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def of(self, name: str) -> str:
        self.found.add(name)
        return name


def _keep(_: Names, text: str) -> str:
    return text


def _name(names: Names, text: str) -> str:
    return names.of(text)


def _text(_: Names, text: str) -> str:
    return TEXT if text else ""


def _title(names: Names, text: str) -> str:
    return "/".join(map(names.of, text.split("/")))


def _key(names: Names, text: str) -> str:
    """Keys of Kubernetes and vendors stay: the scheduler needs them, and they identify no user."""
    domain, slash, _ = text.partition("/")
    is_public = slash and domain.endswith(_PUBLIC_DOMAINS)
    return text if is_public else names.of(text)


def _value(names: Names, text: str) -> str:
    """Numbers stay, because they can be compared (Gt, Lt)."""
    return text if text in _PUBLIC_VALUES or text.lstrip("+-").isdecimal() else names.of(text)


class _Pairs:
    """A field of one or more (key, value) strings, each renamed by its own rule."""

    def __init__(self, key: Rule, value: Rule) -> None:
        self.key, self.value = key, value


_LABELS = _Pairs(_key, _value)

RULES: dict[str, dict[str, Rule | _Pairs]] = {
    "Workload": {
        "uid": _name,
        "namespace": _name,
        "name": _name,
        "payload": _name,
        "quota": _name,
        "warnings": _text,
        "priority_label": _name,
    },
    "PrioritySource": {"kind": _keep, "name": _name},
    "ObjectRef": {
        "group": _keep,
        "version": _keep,
        "resource": _keep,
        "kind": _keep,
        "namespace": _name,
        "name": _name,
    },
    "Item": {"completion": _keep, "suspended": _text},
    "PodSet": {
        "path": _keep,
        "request": _keep,
        "added": _keep,
        "unmodelled": _keep,
        "domain": _LABELS,
    },
    "Topology": {"levels": _key, "group": _name},
    "ChosenDomain": {"path": _keep, "domain": _LABELS},
    "Constraint": {"selector": _LABELS, "node_name": _name},
    "Requirement": {"key": _key, "operator": _keep, "values": _value},
    "Toleration": {"key": _key, "operator": _keep, "value": _value, "effect": _keep},
    "Taint": {"key": _key, "value": _value, "effect": _keep},
    "HostPort": {"protocol": _keep, "address": _value},
    "Problem": {"field": _keep, "message": _text},
    "Persisted": {"state": _keep, "quota": _name, "unreadable": _text, "deleted_trees": _name},
    "Condition": {"type": _keep, "reason": _keep, "message": _text},
    "DispatchRecord": {
        "payload": _name,
        "reason": _keep,
        "message": _text,
        "quota": _name,
        "preemptor": _name,
        "prefers": _LABELS,
    },
    "AddedRequests": {"requests": _keep},
    "KeptApart": {"path": _keep, "nodes": _name},
    "InternalError": {"id": _keep, "message": _keep},
    "PodCounts": {"totals": _keep, "unscheduled": _name},
    "Unscheduled": {"message": _text},
    "Reservation": {"nodes": _name, "waits_for": _name},
    "Eviction": {"by": _name, "title": _title},
    "Node": {"name": _name, "allocatable": _keep, "labels": _LABELS, "evicts": _keep},
    "NodeGone": {"name": _name},
    "QuotaSubtree": {
        "uid": _name,
        "namespace": _name,
        "name": _name,
        "tree": _name,
        "parent": _name,
    },
    "DispatchPause": {
        "uid": _name,
        "name": _name,
        "namespace": _name,
        "tree": _name,
        "node": _name,
        "reason": _text,
    },
    "QuotaChild": {"name": _name, "nominal": _keep, "flaw": _text},
    "QuotaCondition": {"type": _keep, "reason": _keep, "message": _text},
    "NodeStatus": {
        "name": _name,
        "nominal": _keep,
        "allocated": _keep,
        "borrowed": _keep,
        "lent": _keep,
        "waiting": _keep,
    },
    "Pod": {
        "uid": _name,
        "namespace": _name,
        "name": _name,
        "node": _name,
        "request": _keep,
        "workload": _name,
        "root": _name,
        "disruption": _keep,
        "nominated": _name,
    },
    "Stuck": {"message": _text},
    "Child": {
        "uid": _name,
        "workload": _name,
        "met": _keep,
        "suspended": _text,
        "words": _text,
    },
    "KindWatched": {"group": _keep, "resource": _keep, "message": _text},
    "Answer": {"reason": _keep, "message": _text},
    "ItemCreated": {"uid": _name, "object_uid": _name, "warnings": _text},
    "Holder": {"uid": _name, "owner_uid": _name, "owner_name": _name},
    "WarningsRead": {"uid": _name, "words": _text, "pod": _name},
    "AccessReviewed": {"namespace": _name, "group": _keep, "resource": _keep, "user": _name},
    "StrayRefused": {"uid": _name, "object_uid": _name},
    "Remnant": {"uid": _name, "finalizers": _key},
}
"""What becomes of each text by record and field. In all other records only ``uid`` is one."""

_ONLY_UID: dict[str, Rule | _Pairs] = {"uid": _name}


def renamed(value: Any, names: Names) -> Any:
    """An event, or a part of one, with pseudonyms."""
    rules = RULES.get(type(value).__name__, _ONLY_UID)
    fields = {
        name: _renamed(getattr(value, name), rules.get(name), names)
        for name in value.__struct_fields__
    }
    return msgspec.structs.replace(value, **fields)


def _renamed(value: Any, rule: Rule | _Pairs | None, names: Names) -> Any:
    match value:
        case str() if type(value) is str:
            if not callable(rule):
                raise TypeError(f"no rule for the text {value!r}")
            return rule(names, value)
        case msgspec.Struct():
            return renamed(value, names)
        case (str() as key, str() as text) if isinstance(rule, _Pairs):
            return rule.key(names, key), rule.value(names, text)
        case tuple() if isinstance(rule, _Pairs):
            return tuple((rule.key(names, k), rule.value(names, v)) for k, v in value)
        case tuple() | frozenset():
            return type(value)(_renamed(one, rule, names) for one in value)
        case _:
            return value  # a number, a word of an enumeration, or nothing


def write_copy(sessions: Iterable[Session], folder: Path, wrong: list[str]) -> Iterator[str]:
    """Write the copy of these leaderships; returns lines about it.

    What cannot be read is added to ``wrong``.
    """
    sessions = list(sessions)
    collected = _Collected()
    for session in sessions:
        for _, _, event in _events(session, wrong):
            if event is not None:
                renamed(event, collected)
        for namespace, _ in session.header.settings.max_priority:
            collected.of(namespace)
    names = Names(collected.found)
    for number, session in enumerate(sessions, 1):
        yield _copy(session, number, names, folder)


def _copy(session: Session, number: int, names: Names, folder: Path) -> str:
    old = session.header.settings
    ceilings = tuple((names.of(name), n) for name, n in old.max_priority)
    settings = replace(old, max_priority=ceilings)
    header = Header(f"leader-{number}", session.header.epoch, settings)
    core, journal, steps, differing = None, None, 0, 0
    limits = Limits(files=1_000_000)
    for now, then, event in _events(session, []):
        if core is None or journal is None or event is None:
            if journal is not None:
                journal.close()
            core = Dispatcher(settings)
            journal = Journal(folder, header, core.cluster, limits)
        if event is None:
            continue
        event = renamed(event, names)
        commands = core.step(event, now)
        journal.note(now, event, commands)
        steps += 1
        if then is not None:
            differing += sorted(map(_gist, commands)) != sorted(
                _gist(command, names) for command in then
            )
    if journal is not None:
        journal.close()
    return f"{header.session}: {steps} steps, {differing} with other decisions than the original"


def _events(
    session: Session, wrong: list[str]
) -> Iterator[tuple[Instant, tuple[Command, ...] | None, Event | None]]:
    """Each time, digest and event; None where another core begins.

    The state at that point is written as events of a restart, whose commands are not known.
    """
    for found in drive(session):
        if isinstance(found, Gap):
            wrong.append(found.why)
        elif isinstance(found, Begin):
            yield 0, None, None
            if found.cluster is not None:
                for event in present(found.cluster):
                    yield found.cluster.now, None, event
        else:
            yield found.step.now, found.commands, found.step.event


def _gist(command: Command, names: Names | None = None) -> tuple[str, ...]:
    """A command without its texts."""
    uid = getattr(command, "uid", "")
    found = [type(command).__name__, names.of(uid) if names is not None else uid]
    found += [str(getattr(command, name, "")) for name in ("attempt", "item", "at")]
    record = getattr(getattr(command, "status", None), "dispatch", None)
    if record is not None:
        found += [str(record.attempt), str(record.phase)]
    return tuple(found)
