"""``mcad describe`` for people: the page about one AppWrapper, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from mcad.api.labels import QUEUE_NAME
from mcad.api.wire import as_int, as_list, as_map, as_text
from mcad.cli.colours import Palette, printable
from mcad.cli.human_amounts import human_amount
from mcad.cli.presence import NO_DISPATCHER
from mcad.cli.reservation_lines import eviction, kept_off, reservation_facts
from mcad.cli.rows import place
from mcad.cli.start_times import start_lines
from mcad.cli.tables import NONE, UNKNOWN, Row, age, amounts, table
from mcad.core.state.waiting_reason import HOLDS

Json = dict[str, Any]

NAME_WIDTH = 14
FIGURES = ("RESOURCE", "REQUESTED", "AVAILABLE", "MISSING")


class Description(Struct, frozen=True):
    """What is told: the live object, the dispatcher's figures (None if it knows none), Events.

    The object is None where only the dispatcher was asked.
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
        """What the dispatcher has written."""
        return as_map(self.obj.get("status")) if self.obj is not None else {}


def event_time(event: Json) -> str | None:
    """When an Event happened last, whichever API wrote it."""
    metadata = as_map(event.get("metadata"))
    for value in (event.get("lastTimestamp"), event.get("eventTime")):
        if value:
            return str(value)
    return as_text(metadata.get("creationTimestamp")) or None


def _expected(described: Description) -> int:
    """How long it is expected to run by ``schedulingSpec``, in seconds; 0 if that is not said."""
    rules = as_map(as_map(as_map(described.obj).get("spec")).get("schedulingSpec"))
    return as_int(as_map(rules.get("dispatchDuration")).get("expected"))


def _on_record(described: Description) -> Json:
    """The reservation as the dispatcher has written it, where there is something written."""
    return {"reservation": described.status.get("reservation")} if described.obj is not None else {}


class Page:
    """Writes descriptions: ages are those of this moment."""

    def __init__(self, now_us: int, palette: Palette) -> None:
        """``now_us`` is wall-clock microseconds."""
        self._now_us = now_us
        self._palette = palette

    def lines(self, described: Description) -> Iterator[str]:
        """All lines, without line breaks."""
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
            yield pair("Conditions", "not asked for; they and Events are shown without --server")
            return
        if described.detail is None:
            yield from _unknown(as_map(described.obj.get("spec")))
        yield from self._dispatch(as_map(described.status.get("dispatch")))
        yield from self._conditions(described)
        yield from self._told(described.events)

    def _figures(self, detail: Json) -> Iterator[str]:
        yield pair("Dialect", detail["dialect"])
        yield pair("Priority", detail["priority"])
        yield pair(
            "First seen", f"{detail['firstSeen']} ({age(detail['firstSeen'], self._now_us)} ago)"
        )
        yield self._state(f"{detail['state']} ({detail['queuejobstate']})")
        for text in detail.get("warnings", ()):  # an older dispatcher does not tell any
            yield pair("Warning", text)
        yield from _place(detail)
        yield from self._reason(detail)
        if detail.get("starts"):  # an older dispatcher does not tell
            yield from (pair(*line) for line in start_lines(detail["starts"], self._now_us))
        yield from self._claims(detail)
        yield pair("Demand", amounts(detail["demand"]))
        yield from _quota(detail)
        yield pair("Pods", ", ".join(f"{count} {phase}" for phase, count in detail["pods"].items()))
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

    def _claims(self, detail: Json) -> Iterator[str]:
        """An older dispatcher does not tell of them."""
        if reservation := as_map(detail.get("reservation")):
            yield "Reservation:"
            yield from indented(pair(*fact) for fact in reservation_facts(reservation, self._ago))
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
        ]
        yield from indented(pair(title, value) for title, value in facts if value)

    def _ago(self, instant: Any) -> str:
        return f"{instant} ({age(instant, self._now_us)} ago)" if instant else ""

    def _conditions(self, described: Description) -> Iterator[str]:
        conditions = [as_map(one) for one in as_list(described.status.get("conditions"))]
        if not conditions and described.detail is not None:
            yield pair("Conditions", f"{NONE}: no dispatcher has written any yet")
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

    def _told(self, events: list[Json]) -> Iterator[str]:
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
    """A line ``Title:   value``, the values of a page below each other."""
    return f"{title + ':':<{NAME_WIDTH}}{printable(str(value))}"


def _unknown(spec: Json) -> Iterator[str]:
    """Why the dispatcher has no figures for it."""
    manager = as_text(spec.get("managedBy"))
    if manager:
        yield pair("Managed by", f"{manager}; this dispatcher leaves it alone")
    else:
        yield pair(
            "State", "<unknown>: the dispatcher has not seen it, or it is just being deleted"
        )


def _figure(one: Json) -> tuple[str, ...]:
    """One resource of a refusal; exact where rounding would hide what is missing."""
    resource = one["resource"]
    exact = tuple(one[title.lower()] for title in FIGURES[1:])
    rounded = tuple(human_amount(resource, amount) for amount in exact)
    hides = rounded[0] == rounded[1] and exact[0] != exact[1]
    return (resource, *(exact if hides else rounded))


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


def _one_ahead(row: Json, *, of_head: bool) -> str:
    """Who is further ahead; and why that does not keep the head of the line from going next.

    The head is the first one refused that would fit if every AppWrapper left, so whoever was
    refused before it does not even fit then.
    """
    title = f"{row['namespace']}/{row['name']}"
    if not of_head:
        return title
    if row["waitsFor"] in ("", NO_DISPATCHER):
        return f"{title} (it fits)"
    if row["waitsFor"] in HOLDS:
        return f"{title} (kept back: {row['waitsFor']})"
    return f"{title} (does not fit even with every AppWrapper gone)"


def _quota(detail: Json) -> Iterator[str]:
    """Where it is charged in each tree, from its leaf to the root: ``teams: red < all``."""
    for one in detail.get("quota", ()):  # an older dispatcher does not tell any
        leads = " < ".join(one["path"]) or f"{one['leaf']} (there is no such leaf)"
        yield pair("Quota", f"{one['tree']}: {leads}")


def _queue(queue: str, detail: Json | None) -> str:
    """What the name of a queue of Kueue's means here."""
    for one in (detail or {}).get("quota", ()):
        if one["leaf"] == queue:
            return f"{queue} (a label of Kueue's: its leaf of quota tree {one['tree']})"
    return f"{queue} (a label of Kueue's; here all wait in one queue)"


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
    """A guessed number of pods is marked, because it may be wrong."""
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
    """What belongs to the line before."""
    for line in lines:
        yield f"  {line}"
