"""Figures of the leading process, computed in slices so that its event loop keeps turning.

The HTTP port (http_port.py) and the visibility API (visibility/) return the same figures.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from mcad.api.list_page import PageFacts, PageQuery
from mcad.api.wire import to_json
from mcad.controller import quota_views
from mcad.controller.answers import answer, created, why_answer
from mcad.controller.cooperative import in_slices
from mcad.controller.gc_tuning import not_collected
from mcad.controller.paged_list import PagedList
from mcad.controller.shared_answers import SharedAnswers
from mcad.controller.views import capacity_sums, detail_steps, node_steps, row_steps
from mcad.core.answers.behind import is_behind
from mcad.core.answers.dry_run import Facts
from mcad.core.events import Event
from mcad.core.views.rows import Picture
from mcad.journal.restart import present

if TYPE_CHECKING:
    from mcad.api.questions import Question
    from mcad.controller.replica import Replica
    from mcad.controller.runtime import Controller
    from mcad.core.cluster import Cluster
    from mcad.core.state.entry import Entry

Json = dict[str, Any]
T = TypeVar("T")


ASKED_MAX = 20
"""Questions that wait for an answer at the same time, of all users."""


class FiguresUnavailable(Exception):  # noqa: N818 - names a state
    """No figures are available at present; the message says why."""


class LeaderFigures:
    """Figures of this process; ``FiguresUnavailable`` while it does not lead or is not synced."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._lists: SharedAnswers[PagedList] = SharedAnswers()
        self._turn = asyncio.Lock()  # of answers that take copies of the dispatcher
        self._asked = 0  # of them, the present one included

    async def rows(
        self,
        render: Callable[[Json], T],
        *,
        waiting_only: bool,
        with_starts: bool,
        namespace: str | None = None,
    ) -> list[T]:
        """One row per AppWrapper (of a namespace), made by ``render``; those in line first, in
        order."""
        picture = await self._picture()
        steps = row_steps(
            self._cluster(),
            picture,
            waiting_only=waiting_only,
            with_starts=with_starts,
            namespace=namespace,
        )
        rendered = (render(row) if row is not None else None for row in steps)
        return await self._in_slices(rendered, picture.renew)

    async def page(
        self, render: Callable[[Json], T], query: PageQuery, *, with_starts: bool, max_age_s: int
    ) -> tuple[list[T], PageFacts]:
        """One page of the rows, made by ``render``, and the facts about it.

        All pages that accept its age are made from one list.
        """
        which = id(self._cluster())
        listed = await self._lists.get(which, max_age_s, self._listed)
        begun = time.monotonic()
        chosen, facts = listed.find(query)
        await asyncio.sleep(0)
        listed.picture.renew()
        steps = map(render, listed.row_steps(chosen, with_starts=with_starts))
        rows = await self._in_slices(steps, listed.picture.renew)
        self._lists.charge(which, time.monotonic() - begun)
        return rows, facts

    async def _listed(self) -> PagedList:
        return PagedList(self._cluster(), await self._picture())

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full, or None if it does not exist."""
        picture = await self._picture()
        steps = detail_steps(self._cluster(), picture, namespace, name)
        return next(iter(await self._in_slices(steps, picture.renew)), None)

    async def why(self, namespace: str, name: str) -> Json | None:
        """The detail of one AppWrapper with why it waits and what would start it now, or None if it
        does not exist."""
        async with self._in_turn():
            detail = await self.detail(namespace, name)
            if detail is None:
                return None
            uid, now = detail["uid"], self._controller.clock.now_us()
            facts = await self._facts(is_behind(self._cluster(), uid, now))
            return detail | await asyncio.to_thread(why_answer, facts, uid)

    async def what_if(self, question: Question, own: str) -> Json:
        """What would differ; ``own`` is the namespace of names without one. Raises
        ``BadQuestionError``."""
        async with self._in_turn():
            facts = await self._facts()
            new = created(question.manifests, self._controller.read_appwrapper, facts.now)
            return await asyncio.to_thread(answer, facts, question, new, own)

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        """One at a time; of more than ``ASKED_MAX`` the last ones are refused."""
        if self._asked >= ASKED_MAX:
            raise FiguresUnavailable("too many questions at the same time; ask again later")
        self._asked += 1
        try:
            async with self._turn:
                with not_collected():
                    yield
        finally:
            self._asked -= 1

    async def _facts(self, leave_out: Callable[[Entry], bool] = lambda _: False) -> Facts:
        """What was observed, for copies: they run in a thread, beside the dispatcher. AppWrappers
        to ``leave_out`` are not needed."""
        cluster = self._cluster()
        events: list[Event] = await self._in_slices(present(cluster, leave_out))
        return Facts(cluster.settings, events, self._controller.clock.now_us())

    def titles(self) -> frozenset[str]:
        """NAMESPACE/NAME of all AppWrappers."""
        return frozenset(entry.title for entry in self._cluster().entries.values())

    async def capacity(self) -> bytes:
        """Capacity per node and in total, as the text of a JSON object."""
        cluster = self._cluster()
        nodes = await self._texts(node_steps(cluster))
        return b'{"nodes":[' + nodes + b"]," + to_json(capacity_sums(cluster))[1:]

    async def quota(self) -> bytes:
        """All quota trees, as the text of a JSON object."""
        enabled = to_json(self._controller.quotas is not None)
        trees = await self._texts(quota_views.tree_steps(self._cluster()))
        return b'{"enabled":' + enabled + b',"trees":[' + trees + b"]}"

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with its holders and its queue, or None if it does not exist."""
        picture = await self._picture()
        steps = quota_views.node_steps(self._cluster(), picture, tree, node)
        return next(iter(await self._in_slices(steps, picture.renew)), None)

    @property
    def _controller(self) -> Controller:
        controller = self._replica.controller
        if controller is None:
            raise FiguresUnavailable("this process stands by")
        return controller

    def _cluster(self) -> Cluster:
        """The state of the core, once it is complete: partial figures would be wrong."""
        watches = self._controller.watches
        if watches.absence:
            raise FiguresUnavailable(watches.absence)
        if not watches.is_synced:
            raise FiguresUnavailable("not synced yet; see /readyz")
        return self._controller.dispatcher.cluster

    async def _picture(self) -> Picture:
        """The AppWrappers of now, in order."""
        picture = Picture(self._cluster(), self._controller.clock.now_us())
        await asyncio.sleep(0)
        await self._in_slices(picture.order())
        await asyncio.sleep(0)
        picture.renew()
        return picture

    async def _texts(self, parts: Iterable[Json]) -> bytes:
        return b",".join(await self._in_slices(map(to_json, parts)))

    async def _in_slices(
        self, steps: Iterator[T | None], renew: Callable[[], None] = lambda: None
    ) -> list[T]:
        return await in_slices(steps, self._controller.clock.monotonic, renew)
