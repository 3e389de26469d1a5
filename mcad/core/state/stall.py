"""Why pods of a running AppWrapper do not run, as a record and in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from mcad.core.state.model import Pod
from mcad.core.state.reasons import some_of
from mcad.core.state.records import Struct
from mcad.core.state.units import SECOND, Duration, Instant, format_clock, format_duration


class Stall(Struct, frozen=True):
    """What keeps pods from running. ``what`` begins the sentence, ``words`` are those of another
    component; ``since`` and ``until`` (when the attempt ends for that) are 0 if there is no such
    time. A stall that ``lasts`` will not end within seconds: it is reported at once."""

    reason: str
    what: str
    words: str = ""
    since: Instant = 0
    until: Instant = 0
    lasts: bool = False

    def explain(self, now: Instant = 0) -> str:
        """One sentence. With ``now`` it has time spans for a reader; without it times of the day,
        for a status that may be read at any time."""
        text = self.what
        if self.since:
            begun = f"for {_span(now - self.since)}" if now else f"since {format_clock(self.since)}"
            text += f" {begun}"
        if self.words:
            text += f" ({self.words.rstrip('.')})"
        if not self.until:
            return f"{text}."
        left, clock = _span(self.until - now + SECOND - 1), format_clock(self.until)
        return f"{text}; the attempt ends {f'in {left}' if now else f'at {clock}'}."

    def says(self, message: str) -> bool:
        """Whether a message reports the same, except for figures, generated names and order."""
        text = self.explain()
        is_same = text.partition(" ")[0] == message.partition(" ")[0]
        return is_same and self.has_words_of(message)

    def has_words_of(self, message: str) -> bool:
        """Whether a message has the same words of another component."""
        return _reasons(self.explain()) == _reasons(message)


def _span(duration: Duration) -> str:
    return format_duration(max(duration, 0) // SECOND * SECOND)


def _reasons(message: str) -> frozenset[str]:
    """The parts of the words of another component, without figures and names: kube-scheduler's have
    figures of the whole cluster, and controllers name the pod of their last try."""
    words = message.partition("(")[2].rpartition(")")[0]
    parts = re.split(r"[,:]", re.sub(r'[0-9]+|"[^"]*"', "", words))
    return frozenset(part.strip() for part in parts)


def refusal(pods: Iterable[Pod]) -> str:
    """What kube-scheduler reports of most of these pods, "" without a report: its first sentence
    has the reasons of the nodes; the rest is about preemption and other plugins."""
    said = Counter(
        pod.unscheduled.message.partition(". ")[0].strip().rstrip(".")
        for pod in pods
        if pod.unscheduled is not None
    )
    return min(said, key=lambda words: (-said[words], words), default="")


def no_node(pods: Iterable[Pod], left_with_room: Iterable[str]) -> str:
    """What kube-scheduler reports of most of these pods, and the nodes that would take them but are
    excluded by their attempt (ADR 48)."""
    nodes = tuple(dict.fromkeys(left_with_room))
    told = f"{some_of(nodes)} has room, and this attempt excludes it; requeue to place pods anew"
    return "; ".join(filter(None, (refusal(pods), told if nodes else "")))
