"""docs/inside/clusters.md: what happens without each rule, as the model finds it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.clusters.cases import ENDLESS, HARMS, WASTES, Case
from tests.clusters.model import TEXTS, World
from tests.documents.pages import DOCS, table

PAGE = DOCS / "inside" / "clusters.md"

ACCIDENTS = {
    "deletes_copies": "users delete copies",
    "resumes_copies": "users resume copies",
    "recreates": "a tool creates a copy again",
    "restores": "the hub is restored",
    "clones": "a second hub is made of a backup",
}


def generated() -> str:
    """The generated part of the page."""
    return "\n".join(
        table(("without", "what it says", "in a world where", "what happens"), _rows())
    )


def _rows() -> Iterator[tuple[str, ...]]:
    for case in HARMS:
        again = case.off[0].startswith("m8")
        what = "runs again after its end" if again else "two are alive"
        yield _row(case, f"{what}, in {case.steps} steps")
    for case in ENDLESS:
        yield _row(case, "no ending: a deleted copy stays for ever")
    for case in WASTES:
        yield _row(case, "no harm, but running attempts are deleted for nothing")


def _row(case: Case, what: str) -> tuple[str, ...]:
    rules = " and ".join(one.partition("_")[0].upper() for one in case.off)
    return rules, "; ".join(TEXTS[one] for one in case.off), _world(case.world), what


def _world(world: World) -> str:
    names = [text for field, text in ACCIDENTS.items() if getattr(world, field)]
    if world.leaders > 1 and not world.clones:
        names.insert(0, "requests are late or repeated")
    return ", ".join(names) or "nothing else happens"
