"""One AppWrapper for the drawer; what would start it is asked on demand only."""

from __future__ import annotations

from typing import Any, Self

from msgspec import Struct

from mcad.api.wire import as_int, as_list, as_map, as_text
from mcad.client.appwrappers.latest_events import event_time, list_events
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.errors import McadError, UnavailableError, explain
from mcad.kube.errors import ApiError, KubeError
from mcad.ui.board import Board, Moment

Json = dict[str, Any]


class Details(Struct, frozen=True):
    """The figures (None if it is not known) and the live object (None with --server)."""

    namespace: str
    name: str
    detail: Json | None
    obj: Json | None

    @property
    def row(self) -> Json:
        """Namespace and name, as a row has them."""
        return {"namespace": self.namespace, "name": self.name}

    @property
    def title(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    @property
    def conditions(self) -> list[Json]:
        """The conditions of the status, oldest transition first."""
        found = [
            as_map(one) for one in as_list(as_map(as_map(self.obj).get("status")).get("conditions"))
        ]
        read = [
            {key: as_text(one.get(key)) for key in ("type", "status", "reason", "message")}
            | {"at": as_text(one.get("lastTransitionMicroTime") or one.get("lastTransitionTime"))}
            for one in found
        ]
        return sorted(read, key=lambda one: one["at"])


async def read_details(board: Board, moment: Moment, namespace: str, name: str) -> Details:
    """The AppWrapper as the latest figures have it; raises ``McadError`` without rights."""
    if moment.namespace not in (None, namespace):
        return Details(namespace, name, None, None)
    detail = await moment.figures.detail(namespace, name)
    if detail is None:
        return Details(namespace, name, None, None)
    if board.source.server:
        return Details(namespace, name, detail, None)
    async with board.environment.connect(board.source.target, watches=False) as session:
        obj = await read_appwrapper(session.client, namespace, name)
    return Details(namespace, name, detail, obj)


class Told(Struct, frozen=True):
    """An Event about the AppWrapper."""

    at: str
    reason: str
    message: str
    count: int
    is_warning: bool

    @classmethod
    def of(cls, event: Json) -> Self:
        """An Event of the core API."""
        series = as_map(event.get("series"))
        return cls(
            at=event_time(event) or "",
            reason=as_text(event.get("reason")),
            message=as_text(event.get("message")),
            count=as_int(event.get("count")) or as_int(series.get("count")) or 1,
            is_warning=event.get("type") == "Warning",
        )


async def read_told(board: Board, moment: Moment, namespace: str, name: str) -> list[Told]:
    """The latest Events, latest first; none of one that is not shown. Raises ``McadError``."""
    if board.source.server:
        raise McadError("omit --server to see them: they are in the cluster")
    is_shown = moment.namespace in (None, namespace)
    detail = await moment.figures.detail(namespace, name) if is_shown else None
    if detail is None:
        return []
    uid = as_text(detail.get("uid"))
    async with board.environment.connect(board.source.target, watches=False) as session:
        try:
            found = await list_events(session.client, namespace, uid)
        except KubeError as error:
            if isinstance(error, ApiError) and error.forbidden:
                raise McadError(f"You may not list events in namespace {namespace}.") from error
            raise explain(error) from error
    return [Told.of(event) for event in reversed(found)]


async def read_answer(moment: Moment, namespace: str, name: str) -> Json | None:
    """What blocks it and what would start it; None if it is not known."""
    if moment.figures.is_stored:
        raise UnavailableError("; ".join(moment.figures.notes))
    return await moment.figures.why(namespace, name)
