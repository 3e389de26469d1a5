"""The first lines of the screen: where the figures come from, and how old they are."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.text import Text

from mcad.cli.pages.colours import printable
from mcad.cli.terminal.follower import Snapshot
from mcad.kube.durations import human

SECOND_US = 1_000_000


def title(where: str, namespace: str | None, now_us: int, width: int) -> Text:
    """The first line: what is shown, and the time at its right end."""
    scope = f"namespace {namespace}" if namespace else "all namespaces"
    left = printable(f"mcad top  {where}  {scope}")
    clock = datetime.fromtimestamp(now_us / SECOND_US, UTC).strftime("%H:%M:%S UTC")
    blanks = width - len(left) - len(clock)
    return Text(left + " " * blanks + clock if blanks > 1 else left, "bold")


def state_of_figures(trouble: str, snapshot: Snapshot | None, now_us: int) -> Text:
    """The lines below: troubles first, then origin and age of the figures."""
    parts = [Text(printable(trouble), "red")] if trouble else []
    notes = snapshot.figures.notes if snapshot is not None else ()
    parts += [Text(printable(note), "yellow") for note in notes]
    if snapshot is None:
        parts.append(Text("reading the cluster..."))
    else:
        origin = "stored" if snapshot.figures.is_stored else "of the dispatcher"
        age_s = max(0, now_us - snapshot.at_us) // SECOND_US
        parts.append(Text(f"figures {origin}; updated {human(age_s)} ago"))
    return Text("\n").join(parts)
