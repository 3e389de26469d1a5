"""Pods without a node: how many, since when, why, and when that ends the attempt.

A reader gets the present figures (``explain``). The condition and an Event report it after
``REPORT_AFTER``, and again at most once per ``REPORT_INTERVAL``: kube-scheduler's words contain
figures of the whole cluster, which change all the time. The condition records what was reported, so
a restart does not repeat it.
"""

from __future__ import annotations

import re

from mcad.core.attempts import pod_timeouts
from mcad.core.cluster import Cluster
from mcad.core.running import health
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Condition, Dialect
from mcad.core.state.reasons import ConditionType, EventReason
from mcad.core.state.records import Struct
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Duration, Instant, format_clock, format_duration

REPORT_AFTER: Duration = 10 * SECOND
REPORT_INTERVAL: Duration = 60 * SECOND


class Unplaced(Struct, frozen=True):
    """The pods of one AppWrapper that have no node: ``until`` is when it is taken back for that, 0
    if never; ``words`` are what kube-scheduler says of most of them."""

    count: int
    words: str
    since: Instant
    until: Instant


def explain(cluster: Cluster, entry: Entry, now: Instant) -> str:
    """One sentence with the figures of this moment, "" if all pods have nodes."""
    found = look(cluster, entry)
    return _text(entry, found, now) if found is not None else ""


def report(cluster: Cluster, entry: Entry) -> None:
    """Report in the condition and by an Event, unless the last report is recent or the same."""
    shown = entry.conditions.get(_shown_in(entry))
    tells = cluster.capacity.pods.counts(entry.uid).pending and not _are_ready(entry)
    found = look(cluster, entry) if tells else None
    message = _text(entry, found) if found is not None else ""
    is_news = shown is not None and (found is not None or _is_report(shown))
    if shown is None or not is_news or _gist(message) == _gist(shown.message):
        entry.stop(Timer.UNSCHEDULED)
        return
    due = _due(cluster, entry, shown, found)
    if cluster.now < due:
        cluster.agenda.set_timer(entry, Timer.UNSCHEDULED, due)
        return
    entry.put_condition(
        _shown_in(entry), cluster.now, status=shown.status, reason=shown.reason, message=message
    )
    if found is not None and _reasons(message) != _reasons(shown.message):
        note = _text(entry, found, cluster.now)
        cluster.announce(entry, EventReason.UNSCHEDULED, note, action="Place", warning=True)


def _due(cluster: Cluster, entry: Entry, shown: Condition, found: Unplaced | None) -> Instant:
    """When a report is due. That all pods have nodes is reported along with the pod counts."""
    due = shown.updated + REPORT_INTERVAL if _is_report(shown) else 0
    if found is not None:
        return max(due, found.since + REPORT_AFTER)
    return max(due, entry.counted_at + cluster.settings.pod_counts_interval)


# -- what there is -------------------------------------------------------------------------------


def look(cluster: Cluster, entry: Entry) -> Unplaced | None:
    """Its pods that kube-scheduler has refused so far, None if there are none."""
    if entry.phase is not Phase.RUNNING or entry.workload.deleting:
        return None
    pods = cluster.capacity.pods.unbound(entry.uid)
    refused = [pod for pod in pods if pod.unscheduled is not None]
    if not refused:
        return None
    since = min(pod_timeouts.unbound_since(entry, pod) for pod in refused)
    return Unplaced(len(refused), pod_timeouts.refusal(refused), since, _until(cluster, entry))


def _until(cluster: Cluster, entry: Entry) -> Instant:
    """When the attempt ends if nothing changes."""
    if entry.workload.dialect is Dialect.V1BETA2:
        return 0 if _are_ready(entry) else health.patience(entry)
    ends = (pod_timeouts.placement_deadline(cluster, entry), entry.timers.get(Timer.LIMIT, 0))
    return min((at for at in ends if at), default=0)


# -- how it is reported --------------------------------------------------------------------------


def _shown_in(entry: Entry) -> ConditionType:
    """The condition to report in: Dispatched, or for v1beta2 PodsReady."""
    is_v1beta2 = entry.workload.dialect is Dialect.V1BETA2
    return ConditionType.PODS_READY if is_v1beta2 else ConditionType.DISPATCHED


def _are_ready(entry: Entry) -> bool:
    """Whether as many pods are ready as v1beta2 expects: then it goes on without the others."""
    return entry.shows(ConditionType.PODS_READY)


def _text(entry: Entry, found: Unplaced, now: Instant = 0) -> str:
    """With time spans, for a reader of ``now``; without it with times of the day, for a status that
    may be read at any time."""
    pods = f"{found.count} pod{'s' * (found.count != 1)} without a node"
    if now:
        since, until = f"for {_span(now - found.since)}", _span(found.until - now + SECOND - 1)
    else:
        since, until = f"since {format_clock(found.since)}", format_clock(found.until)
    text = f"{pods} {since} ({found.words})"
    if not found.until:
        return f"{text}."
    ends = "reset" if entry.workload.dialect is Dialect.V1BETA2 else "taken back"
    return f"{text}; {ends} {'in' if now else 'at'} {until}."


def _span(duration: Duration) -> str:
    return format_duration(max(duration, 0) // SECOND * SECOND)


def _is_report(shown: Condition) -> bool:
    return " without a node since " in shown.message


def _gist(message: str) -> tuple[str, frozenset[str]]:
    """What makes a report news: the number of pods, and the reasons without their figures."""
    return message.partition(" ")[0], _reasons(message)


def _reasons(message: str) -> frozenset[str]:
    """The reasons in kube-scheduler's words, without their figures and order."""
    words = message.partition("(")[2].rpartition(")")[0]
    parts = re.split(r"[,:]", re.sub(r"[0-9]+", "", words))
    return frozenset(part.strip() for part in parts)
