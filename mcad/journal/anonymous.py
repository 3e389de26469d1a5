"""Writes a copy of a journal without names, for a bug report.

Each name is replaced by one pseudonym with the same order, so that sorting by name gives the same
decisions. Kinds, resources, amounts, times, states and reasons stay; texts are removed. The copied
events are decided again, and the copy contains these decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from mcad.core.nodes.closing import LEAVING, STARTING
from mcad.core.state.records import replace
from mcad.core.state.units import Instant
from mcad.journal import reader
from mcad.journal.codec import Step
from mcad.journal.header import Header
from mcad.journal.reader import Begin, Gap, Session
from mcad.journal.replay import Made, drive
from mcad.journal.restart import present
from mcad.journal.writer import Journal, Limits

TEXT = "(text)"
_PUBLIC_DOMAINS = ("kubernetes.io", "k8s.io", "nvidia.com", "amd.com", "codeflare.dev")
_PUBLIC_VALUES = frozenset({"", "true", "false", "0.0.0.0", "::"})  # noqa: S104 - nothing is bound

Rename = Callable[[str], str]
Rule = Callable[[Rename, str], str]


def pseudonyms(found: Iterable[str]) -> dict[str, str]:
    """The pseudonym of each name: its rank among all names. "" stays."""
    ordered = sorted({*found} - {""})
    width = len(str(len(ordered)))
    return {"": "", **{name: f"n{at:0{width}}" for at, name in enumerate(ordered)}}


def _keep(_: Rename, text: str) -> str:
    return text


def _name(rename: Rename, text: str) -> str:
    return rename(text)


def _text(_: Rename, text: str) -> str:
    return TEXT if text else ""


def _title(rename: Rename, text: str) -> str:
    return "/".join(map(rename, text.split("/")))


def _key(rename: Rename, text: str) -> str:
    """Keys of Kubernetes and vendors stay: the scheduler needs them, and they identify no user."""
    if text in LEAVING or text in STARTING:
        return text
    domain, slash, _ = text.partition("/")
    is_public = slash and domain.endswith(_PUBLIC_DOMAINS)
    return text if is_public else rename(text)


def _value(rename: Rename, text: str) -> str:
    """Numbers stay, because they can be compared (Gt, Lt)."""
    return text if text in _PUBLIC_VALUES or text.lstrip("+-").isdecimal() else rename(text)


_LABEL = _key, _value
"""The rules of a pair of key and value."""

_BY_KIND: dict[str, Rule | tuple[Rule, Rule]] = {
    "name": _name,
    "title": _title,
    "key": _key,
    "value": _value,
    "label": _LABEL,
    "text": _text,
    "keep": _keep,
}


def _rules(**fields: str) -> dict[str, Rule | tuple[Rule, Rule]]:
    """The rule of each field, from the fields of each kind."""
    return {name: _BY_KIND[kind] for kind, names in fields.items() for name in names.split()}


RULES = {
    "Workload": _rules(
        name="uid namespace name payload quota priority_label kept_by", text="warnings"
    ),
    "PrioritySource": _rules(name="name", keep="kind"),
    "ObjectRef": _rules(name="namespace name", keep="group version resource kind"),
    "Item": _rules(text="suspended", keep="completion"),
    "PodSet": _rules(label="domain", keep="path request added unmodelled"),
    "Topology": _rules(name="group", key="levels"),
    "ChosenDomain": _rules(label="domain", keep="path"),
    "Constraint": _rules(name="node_name", label="selector"),
    "Requirement": _rules(key="key", value="values", keep="operator"),
    "Toleration": _rules(key="key", value="value", keep="operator effect"),
    "Taint": _rules(key="key", value="value", keep="effect"),
    "HostPort": _rules(value="address", keep="protocol"),
    "Problem": _rules(text="message", keep="field"),
    "Persisted": _rules(name="quota deleted_trees", text="unreadable", keep="state"),
    "Condition": _rules(text="message", keep="type reason"),
    "DispatchRecord": _rules(
        name="payload quota preemptor", label="prefers", text="message", keep="reason"
    ),
    "AddedRequests": _rules(keep="requests"),
    "KeptApart": _rules(name="nodes", keep="path"),
    "InternalError": _rules(keep="id message"),
    "PodCounts": _rules(name="unscheduled", keep="totals"),
    "Unscheduled": _rules(text="message"),
    "Reservation": _rules(name="nodes waits_for"),
    "Eviction": _rules(name="by", title="title"),
    "Node": _rules(name="name", label="labels", key="closed", keep="allocatable evicts"),
    "NodeGone": _rules(name="name"),
    "QuotaSubtree": _rules(name="uid namespace name tree parent"),
    "DispatchPause": _rules(name="uid name namespace tree node", text="reason"),
    "QuotaChild": _rules(name="name", text="flaw", keep="nominal"),
    "QuotaCondition": _rules(text="message", keep="type reason"),
    "NodeStatus": _rules(
        name="name", keep="nominal allocated leaving reserved borrowed lent waiting"
    ),
    "Pod": _rules(
        name="uid namespace name node workload root nominated", keep="request disruption"
    ),
    "Stuck": _rules(text="message"),
    "Child": _rules(name="uid workload", text="suspended words", keep="met"),
    "KindWatched": _rules(text="message", keep="group resource"),
    "Answer": _rules(text="message", keep="reason"),
    "ItemCreated": _rules(name="uid object_uid", text="warnings"),
    "Holder": _rules(name="uid owner_uid owner_name"),
    "WarningsRead": _rules(name="uid pod", text="words"),
    "AccessReviewed": _rules(name="namespace user", keep="group resource"),
    "StrayRefused": _rules(name="uid object_uid"),
    "ScaleUpSeen": _rules(name="uid object", text="message"),
    "Remnant": _rules(name="uid", key="finalizers"),
}
"""What becomes of each text by record and field. In all other records only ``uid`` is one."""

_ONLY_UID = _rules(name="uid")


def renamed(value: Any, rename: Rename) -> Any:
    """An event, or a part of one, with pseudonyms."""
    rules = RULES.get(type(value).__name__, _ONLY_UID)
    fields = {
        name: _renamed(getattr(value, name), rules.get(name), rename)
        for name in value.__struct_fields__
    }
    return replace(value, **fields)


def _renamed(value: Any, rule: Rule | tuple[Rule, Rule] | None, rename: Rename) -> Any:
    match value:
        case str() if type(value) is str:
            if not callable(rule):
                raise TypeError(f"no rule for the text {value!r}")
            return rule(rename, value)
        case msgspec.Struct():
            return renamed(value, rename)
        case (str(), str()) if isinstance(rule, tuple):
            return tuple(one(rename, text) for one, text in zip(rule, value, strict=True))
        case tuple() | frozenset():
            return type(value)(_renamed(one, rule, rename) for one in value)
        case _:
            return value  # a number, a word of an enumeration, or nothing


def write_copy(
    sessions: Sequence[Session], folder: Path, wrong: list[str], until: Instant | None = None
) -> Iterator[str]:
    """Write the copy of these leaderships, up to an instant; returns lines about it.

    What cannot be read is added to ``wrong``.
    """
    rename = pseudonyms(_names(sessions, wrong)).__getitem__
    for number, session in enumerate(sessions, 1):
        header = _header(session, f"leader-{number}", rename)
        yield _copy(drive(session, until), header, rename, folder)


def _names(sessions: Iterable[Session], wrong: list[str]) -> set[str]:
    """All names in these leaderships."""
    found: set[str] = set()

    def collect(name: str) -> str:
        found.add(name)
        return name

    for session in sessions:
        found.update(namespace for namespace, _ in session.header.settings.max_priority)
        for key in session.header.settings.startup_taints:
            _key(collect, key)
        for event in _events(session, wrong):
            renamed(event, collect)
    return found


def _events(session: Session, wrong: list[str]) -> Iterator[Event]:
    for found in reader.steps(session):
        match found:
            case Step():
                yield found.event
            case Begin(cluster):
                yield from present(cluster)
            case Gap():
                wrong.append(found.why)


class _Recorded(Dispatcher):
    """A core that begins a file, and writes its steps to it."""

    def __init__(self, header: Header, folder: Path) -> None:
        super().__init__(header.settings)
        self.journal = Journal(folder, header, self.cluster, Limits(files=1_000_000))

    def step(self, event: Event, now: Instant) -> tuple[Command, ...]:
        """Make a step and record it."""
        commands = super().step(event, now)
        self.journal.note(now, event, commands)
        return commands


def _header(session: Session, name: str, rename: Rename) -> Header:
    old = session.header.settings
    ceilings = tuple((rename(namespace), n) for namespace, n in old.max_priority)
    taints = tuple(_key(rename, key) for key in old.startup_taints)
    settings = replace(old, max_priority=ceilings, startup_taints=taints)
    return Header(name, session.header.epoch, settings)


def _copy(
    repeated: Iterable[Made | Begin | Gap], header: Header, rename: Rename, folder: Path
) -> str:
    """Copy a leadership. The state that a file begins with is written as events of a restart."""
    core, steps, differing = None, 0, 0
    for found in repeated:
        if isinstance(found, Begin):
            if core is not None:
                core.journal.close()
            core = _Recorded(header, folder)
            for event in present(found.cluster):
                core.step(renamed(event, rename), found.cluster.now)
                steps += 1
        elif isinstance(found, Made) and core is not None:
            commands = core.step(renamed(found.step.event, rename), found.step.now)
            steps += 1
            differing += _gists(commands, str) != _gists(found.commands, rename)
    if core is not None:
        core.journal.close()
    return f"{header.session}: {steps} steps, {differing} with other decisions than the original"


def _gists(commands: Iterable[Command], rename: Rename) -> list[tuple[str, ...]]:
    """The commands without their texts, in any order."""
    return sorted(_gist(command, rename) for command in commands)


def _gist(command: Command, rename: Rename) -> tuple[str, ...]:
    found = [type(command).__name__, rename(getattr(command, "uid", ""))]
    found += [str(getattr(command, name, "")) for name in ("attempt", "item", "at")]
    record = getattr(getattr(command, "status", None), "dispatch", None)
    if record is not None:
        found += [str(record.attempt), str(record.phase)]
    return tuple(found)
