"""The first lines of the screen: where the figures come from, and how old they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.text import Text

from mcad.cli.pages.colours import printable
from mcad.cli.terminal.follower import Health, Snapshot
from mcad.client.figures.presence import Presence
from mcad.kube.durations import human

SECOND_US = 1_000_000


def title(where: str, namespace: str | None, now_us: int, width: int) -> Text:
    """The first line: what is shown, and the time at its right end."""
    scope = f"namespace {namespace}" if namespace else "all namespaces"
    left = printable(f"mcad top  {where}  {scope}")
    clock = datetime.fromtimestamp(now_us / SECOND_US, UTC).strftime("%H:%M:%S UTC")
    blanks = width - len(left) - len(clock)
    return Text(left + " " * blanks + clock if blanks > 1 else left, "bold")


def state_of_figures(health: Health | None, snapshot: Snapshot | None, now_us: int) -> Text:
    """The lines below: troubles first, then the dispatcher, origin and age of the figures."""
    parts = [Text(printable(health.trouble), "red")] if health and health.trouble else []
    notes = snapshot.figures.notes if snapshot is not None else ()
    parts += [Text(printable(note), "yellow") for note in notes]
    if health is not None:
        parts.append(Text("; ".join(_facts(health, snapshot, now_us))))
    return Text("\n").join(parts)


def _facts(health: Health, snapshot: Snapshot | None, now_us: int) -> Iterator[str]:
    if health.is_asked:
        yield "the dispatcher is asked"
    else:
        if health.heartbeat.presence is Presence.RUNNING:
            yield f"leader {printable(health.heartbeat.holder)}"
        elif health.heartbeat.presence is Presence.UNKNOWN:
            yield "leader unknown"
        yield "figures are computed here"
    if snapshot is None:
        yield "reading the cluster..."
    else:
        age_s = max(0, now_us - snapshot.at_us) // SECOND_US
        yield f"updated {human(age_s)} ago"
