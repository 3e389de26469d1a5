"""Asks a dispatcher what it would do if something were different."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcad.api.questions import Changes, Question
from mcad.api.wire import plural
from mcad.client.errors import InvalidError, warn
from mcad.client.figures.figures import Figures, RejectedError
from mcad.client.figures.progress import working
from mcad.client.manifests.declared import check_kind, placed
from mcad.client.manifests.documents import Document

Json = dict[str, Any]


async def what_if(
    figures: Figures,
    changes: Changes,
    documents: Sequence[Document],
    namespace: str | None,
    own: str,
) -> Json:
    """What differs with these changes, among them AppWrappers that are created. ``namespace`` is
    that of all of them, if given; ``own`` that of names without one."""
    manifests = declared(documents, namespace, own)
    with working("comparing the next cycles"):
        try:
            told = await figures.what_if(Question(changes, manifests), own)
        except RejectedError as error:
            raise refused(error, documents) from error
    warn_of(told.pop("warnings", ()), documents)
    return told


def declared(documents: Sequence[Document], namespace: str | None, own: str) -> tuple[Json, ...]:
    """The AppWrappers of the documents, with their namespaces."""
    for document in documents:
        check_kind(document)
    return tuple(placed(document, namespace, own) for document in documents)


def refused(error: RejectedError, documents: Sequence[Document]) -> RejectedError | InvalidError:
    """The error with the places of the faults in files."""
    if not error.faults:
        return error
    count = plural(len(error.faults), "fault")
    faults = tuple(f"{documents[number].origin}: {text}" for number, text in error.faults)
    return InvalidError(f"nothing was tried: {count} to correct first", faults)


def warn_of(warnings: Sequence[tuple[int, str]], documents: Sequence[Document]) -> None:
    """Warn of what is odd in manifests."""
    for number, text in warnings:
        warn(f"{documents[number].origin}: {text}")
