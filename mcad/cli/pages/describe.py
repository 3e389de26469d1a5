"""The page of ``mcad describe`` about one AppWrapper, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from mcad.api.labels import QUEUE_NAME
from mcad.api.wire import as_int, as_list, as_map, as_text
from mcad.cli.pages.colours import Palette, printable
from mcad.cli.pages.human_amounts import human_amount
from mcad.cli.pages.reservation_lines import eviction, kept_off, reservation_facts
from mcad.cli.pages.rows import place
from mcad.cli.pages.start_times import start_lines
from mcad.cli.pages.tables import NONE, UNKNOWN, Row, age, amounts, table
from mcad.client.appwrappers.latest_events import event_time
from mcad.core.state.reasons import some_of
from mcad.core.state.waiting_reason import HOLDS, WaitingReason

Json = dict[str, Any]

NAME_WIDTH = 14
FIGURES = ("RESOURCE", "REQUESTED", "AVAILABLE", "MISSING")
PHASES = ("pending", "running", "succeeded", "failed")


class Description(Struct, frozen=True):
    """What the page shows: the live object, the figures (None if unknown), Events.

    The object is None with --server.
    """

    obj: Json | None
    detail: Json | None
    events: list[Json] = field(default_factory=list)

    @property
    def metadata(self) -> Json:
        """Name, namespace and uid."""
        return as_map(self.obj["metadata"]) if self.obj is not None else self.detail or {}

    @property
    def status(self) -> Json:
        """The status that the dispatcher has written."""
        return as_map(self.obj.get("status")) if self.obj is not None else {}


def _expected(described: Description) -> int:
    """The expected run time of ``schedulingSpec`` in seconds, 0 if there is none."""
    rules = as_map(as_map(as_map(described.obj).get("spec")).get("schedulingSpec"))
    return as_int(as_map(rules.get("dispatchDuration")).get("expected"))


def _on_record(described: Description) -> Json:
    """The reservation of the status, if the object is known."""
    return {"reservation": described.status.get("reservation")} if described.obj is not None else {}


def _domains(record: Json) -> list[tuple[str, str]]:
    """The topology domains that the pods of each item have to be in, or that all of them prefer."""
    items: dict[str, dict[str, None]] = {}
    for one in map(as_map, as_list(record.get("domains"))):
        items.setdefault(_named(one), {})[str(as_int(one.get("item")))] = None
    facts = [("Domain", f"{named} (item {', '.join(found)})") for named, found in items.items()]
    if preferred := as_map(record.get("preferredDomain")):
        facts.append(("Prefers", _named(preferred)))
    return facts


def _excluded(record: Json) -> list[tuple[str, str]]:
    """The nodes that the pods of each template leave to others of their gang."""
    facts = []
    for one in map(as_map, as_list(record.get("excludedNodes"))):
        nodes = tuple(map(as_text, as_list(one.get("nodes"))))
        where = f"item {as_int(one.get('item'))}"
        if one.get("preferred"):
            where += ", if there is room elsewhere"
        facts.append(("Not on", f"{some_of(nodes)} ({where})"))
    return facts


def _named(domain: Json) -> str:
    return f"{as_text(domain.get('label'))}={as_text(domain.get('value'))}"


class Page:
    """Writes descriptions; ages are relative to ``now_us``."""

    def __init__(self, now_us: int, palette: Palette) -> None:
        """``now_us`` is the wall clock in microseconds."""
        self._now_us = now_us
        self._palette = palette

    def lines(self, described: Description) -> Iterator[str]:
        """All lines of the page."""
        metadata = described.metadata
        yield pair("Name", metadata["name"])
        yield pair("Namespace", metadata["namespace"])
        yield pair("UID", metadata["uid"])
        if queue := as_text(as_map(metadata.get("labels")).get(QUEUE_NAME)):
            yield pair("Queue", _queue(queue, described.detail))
        if seconds := _expected(described):
            yield pair(
                "Expected",
                f"to run for {seconds} s (a hint for start time estimates; it may take longer)",
            )
        if described.detail is not None:
            yield from self._figures(described.detail | _on_record(described))
        if described.obj is None:
            yield pair("Conditions", "not read; omit --server to see conditions and Events")
            return
        if described.detail is None:
            yield from _unknown(as_map(described.obj.get("spec")))
        yield from self._dispatch(as_map(described.status.get("dispatch")))
        yield from self._conditions(described)
        yield from self._events(described.events)

    def _figures(self, detail: Json) -> Iterator[str]:
        if detail["dialect"] is not None:
            yield pair("Dialect", detail["dialect"])
        yield pair("Priority", _priority(detail))
        yield pair("First seen", self._ago(detail["firstSeen"]) or NONE)
        yield self._state(f"{detail['state']} ({detail['queuejobstate']})")
        for text in detail.get("warnings", ()):  # absent from older dispatchers
            yield pair("Warning", text)
        yield from _place(detail)
        yield from self._reason(detail)
        if detail.get("starts"):  # absent from older dispatchers
            yield from (pair(*line) for line in start_lines(detail["starts"], self._now_us))
        yield from self._reservations(detail)
        yield pair("Demand", amounts(detail["demand"]))
        yield from _quota(detail)
        counts = detail["pods"]
        pods = ", ".join(f"{counts[one]} {one}" for one in PHASES if one in counts)
        yield pair("Pods", pods or NONE)
        if detail["items"] is None:  # of what is stored
            return
        yield from self._section(
            "Items", ("ITEM", "KIND", "NAME", "EXISTS", "CONDITIONS"), _items(detail)
        )
        yield from self._section(
            "Pod sets", ("ITEM", "PATH", "PODS", "REQUEST", "RESERVED"), _sets(detail)
        )

    def _state(self, told: str) -> str:
        title = pair("State", "").ljust(NAME_WIDTH)
        return title + self._palette.state(printable(told))

    def _reason(self, detail: Json) -> Iterator[str]:
        if not detail["why"]:
            return
        if detail["waitsFor"] or detail["position"]:
            yield pair("Waits for", detail["waitsFor"] or NONE)
        yield pair("Why", detail["why"])
        rows = list(map(_figure, detail["figures"]))
        if rows:
            yield from indented(table(FIGURES, rows, palette=self._palette))

    def _reservations(self, detail: Json) -> Iterator[str]:
        """The reservation, the reservations in the way, and the last eviction."""
        if reservation := as_map(detail.get("reservation")):
            yield "Reservation:"
            yield from indented(pair(*fact) for fact in reservation_facts(reservation, self._ago))
        if detail.get("scaleUp"):
            yield pair("Scale-up", detail["scaleUp"])
        for told in kept_off(detail):
            yield pair("Kept off by", told)
        if evicted := as_map(detail.get("eviction")):
            yield pair("Evicted", eviction(evicted, self._ago))

    def _dispatch(self, record: Json) -> Iterator[str]:
        if not record:
            yield pair("Dispatch", NONE)
            return
        yield "Dispatch:"
        facts = [
            ("Attempt", record.get("attempt")),
            ("Phase", record.get("phase")),
            ("Begun", self._ago(record.get("intentTime"))),
            ("Confirmed", self._ago(record.get("confirmTime"))),
            ("Reason", record.get("reason")),
            ("Message", record.get("message")),
            *_domains(record),
            *_excluded(record),
        ]
        yield from indented(pair(title, value) for title, value in facts if value)

    def _ago(self, instant: Any) -> str:
        return f"{instant} ({age(instant, self._now_us)} ago)" if instant else ""

    def _conditions(self, described: Description) -> Iterator[str]:
        conditions = [as_map(one) for one in as_list(described.status.get("conditions"))]
        if not conditions and described.detail is not None:
            yield pair("Conditions", f"{NONE}: not written by a dispatcher yet")
            return
        rows = [
            (
                as_text(one.get("type")),
                as_text(one.get("status")),
                as_text(one.get("reason")) or NONE,
                age(
                    one.get("lastTransitionMicroTime") or one.get("lastTransitionTime"),
                    self._now_us,
                ),
                as_text(one.get("message")) or NONE,
            )
            for one in conditions
        ]
        yield from self._section("Conditions", ("TYPE", "STATUS", "REASON", "AGE", "MESSAGE"), rows)

    def _events(self, events: list[Json]) -> Iterator[str]:
        rows = [
            (
                as_text(event.get("type")),
                as_text(event.get("reason")),
                age(event_time(event), self._now_us),
                as_text(event.get("message")),
            )
            for event in events
        ]
        yield from self._section("Events", ("TYPE", "REASON", "AGE", "MESSAGE"), rows)

    def _section(self, title: str, columns: Row, rows: Iterable[Row]) -> Iterator[str]:
        lines = list(rows)
        if not lines:
            yield pair(title, NONE)
            return
        yield f"{title}:"
        yield from indented(table(columns, lines, palette=self._palette))


def pair(title: str, value: object) -> str:
    """A line ``Title:   value``, with aligned values."""
    return f"{title + ':':<{NAME_WIDTH}}{printable(str(value))}"


def _unknown(spec: Json) -> Iterator[str]:
    """Why the dispatcher has no figures for the AppWrapper."""
    manager = as_text(spec.get("managedBy"))
    if manager:
        yield pair("Managed by", f"{manager}; ignored by this dispatcher")
    else:
        yield pair("State", "<unknown>: not seen by the dispatcher yet, or being deleted")


def _figure(one: Json) -> tuple[str, ...]:
    """One resource of a refusal; exact amounts where rounding would hide the difference."""
    resource = one["resource"]
    exact = tuple(one[title.lower()] for title in FIGURES[1:])
    rounded = tuple(human_amount(resource, amount) for amount in exact)
    hides = rounded[0] == rounded[1] and exact[0] != exact[1]
    return (resource, *(exact if hides else rounded))


def _priority(detail: Json) -> str:
    """The priority, and the class that it is of; older dispatchers name none."""
    source = detail.get("prioritySource")
    return f"{detail['priority']} (of {source})" if source else str(detail["priority"])


def _place(detail: Json) -> Iterator[str]:
    if not detail["position"]:
        yield pair("Position", place(detail))
        return
    head = ", next to be dispatched once room is free" if detail["headOfLine"] else ""
    yield pair("Position", f"{detail['position']} of {detail['inLine']}{head}")
    ahead = [_one_ahead(one, of_head=detail["headOfLine"]) for one in detail["ahead"]]
    more = detail["position"] - 1 - len(ahead)
    told = ", ".join(ahead) + (f" and {more} more" if more > 0 else "")
    yield pair("Ahead", told or NONE)


_YIELDING = {str(one) for one in WaitingReason if one.lets_others_first}


def _one_ahead(row: Json, *, of_head: bool) -> str:
    """An AppWrapper ahead; for the head of the line, why this one does not block it.

    The head is the first refused AppWrapper that would fit an empty cluster, so those refused
    before it do not even fit then.
    """
    title = f"{row['namespace']}/{row['name']}"
    if not of_head:
        return title
    if not row["waitsFor"]:
        return f"{title} (it fits)"
    if row["waitsFor"] in HOLDS:
        return f"{title} (on hold: {row['waitsFor']})"
    if row["waitsFor"] in _YIELDING:
        return f"{title} (lets another AppWrapper go first)"
    return f"{title} (does not fit even with every AppWrapper gone)"


def _quota(detail: Json) -> Iterator[str]:
    """The quota nodes that are charged, from the leaf to the root, and the share of the leaf:
    ``teams: red < all (cpu: 2 of 4)``."""
    for one in detail.get("quota", ()):  # absent from older dispatchers
        leads = " < ".join(one["path"]) or f"{one['leaf']} (there is no such leaf)"
        nominal, used = one.get("nominal", {}), one.get("allocated", {})
        shares = ", ".join(
            f"{key}: {human_amount(key, used[key])} of {human_amount(key, amount)} used"
            for key, amount in nominal.items()
        )
        yield pair("Quota", f"{one['tree']}: {leads}" + f" ({shares})" * bool(shares))


def _queue(queue: str, detail: Json | None) -> str:
    """The meaning of Kueue's queue label here."""
    for one in (detail or {}).get("quota", ()):
        if one["leaf"] == queue:
            return f"{queue} (Kueue's label; here: leaf of quota tree {one['tree']})"
    return f"{queue} (Kueue's label; here is only one queue)"


def _items(detail: Json) -> Iterator[tuple[str, ...]]:
    for item in detail["items"]:
        yield (
            str(item["item"]),
            item["kind"],
            item["name"],
            _exists(item),
            ",".join(item["conditions"]) or NONE,
        )


def _exists(item: Json) -> str:
    if item["exists"] is None:
        return UNKNOWN
    return "deleting" if item["terminating"] else "yes" if item["exists"] else "no"


def _sets(detail: Json) -> Iterator[tuple[str, ...]]:
    """Rows of pod sets; a guessed number of pods is marked, because it may be wrong."""
    guessed = {item["item"] for item in detail["items"] if item["guessed"]}
    for one in detail["podSets"]:
        count = UNKNOWN if one["replicas"] is None else str(one["replicas"])
        pods = "1/node" if one["perNode"] else count
        yield (
            str(one["item"]),
            one["path"] or "<declared>",
            pods + " (guessed)" * (one["item"] in guessed),
            amounts(one["request"]),
            UNKNOWN if one["reserved"] is None else str(one["reserved"]),
        )


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines that belong to the line before."""
    for line in lines:
        yield f"  {line}"
