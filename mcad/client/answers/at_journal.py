"""What the dispatcher would do if something were different, asked of the state in a journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec import Struct

from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.api.questions import Changes, Question
from mcad.client.answers.what_if import declared, refused, warn_of
from mcad.client.errors import McadError
from mcad.client.figures.figures import rejected
from mcad.client.figures.progress import Progress, working
from mcad.client.manifests.documents import Document
from mcad.controller.answers import BadQuestionError, answer, created
from mcad.core.answers.dry_run import Facts
from mcad.core.cluster import Cluster
from mcad.core.events import QuotaSeen
from mcad.core.state.units import Instant
from mcad.journal.reader import Gap, Session, sessions
from mcad.journal.replay import Made, drive
from mcad.journal.restart import present

Json = dict[str, Any]

NAMESPACE = "default"  # of a name without one


class AtEnd(Struct, frozen=True):
    """The facts at the end of a journal; ``wrong`` are the parts that could not be read."""

    facts: Facts
    wrong: list[str]


def what_if_then(
    end: AtEnd, changes: Changes, namespace: str | None, documents: Sequence[Document] = ()
) -> Json:
    """What differs with these changes, among them AppWrappers that are created. Settings are those
    of the journal, unless changed."""
    facts, own = end.facts, namespace or NAMESPACE
    manifests = declared(documents, namespace, own)
    with working("comparing the next cycles"):
        try:
            new = created(manifests, _reader(facts), facts.now)
            told = answer(facts, Question(changes, manifests), new, own)
        except BadQuestionError as error:
            failed = rejected(error.message, error.faults, missing=error.missing)
            raise refused(failed, documents) from error
    warn_of(told.pop("warnings"), documents)
    return told


def _reader(facts: Facts) -> Callable[[Json], Parsed]:
    """Reads AppWrappers as they would be read then. A journal does not say which kinds the cluster
    had, so those that are known count."""
    has_quota = any(isinstance(one, QuotaSeen) for one in facts.events)
    catalog = catalog_of(Config.model_validate({"quotaEnabled": has_quota}), WELL_KNOWN)
    return lambda obj: parse(obj, catalog)


def read_end(folder: Path, until: Instant | None = None) -> AtEnd:
    """The facts at the end of the last leadership of a journal, or at an instant.

    They are those that a dispatcher would observe that starts then.
    """
    found, wrong = sessions(folder)
    progress = Progress(monotonic)
    try:
        for session in reversed(found):
            end = _end(session, until, wrong, progress)
            if end is not None:
                facts = Facts(session.header.settings, tuple(present(end)), end.now)
                return AtEnd(facts, wrong)
    finally:
        progress.done()
    for line in wrong[:1]:
        raise McadError(line)
    if found:
        raise McadError(f"the journal in {folder} has no steps up to that time")
    raise McadError(f"no journal in {folder}: `mcad run --journal {folder}` writes one")


def _end(
    session: Session, until: Instant | None, wrong: list[str], progress: Progress
) -> Cluster | None:
    """The state after the last step, None without one."""
    end: Cluster | None = None
    for found in drive(session, until):
        if isinstance(found, Gap):
            wrong.append(found.why)
            continue
        if found.cluster.now:
            end = found.cluster
        if isinstance(found, Made):
            progress.add("steps")
    return end
