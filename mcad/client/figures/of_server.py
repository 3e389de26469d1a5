"""Figures of the running dispatcher, from its HTTP port (--server)."""

from __future__ import annotations

from http.client import responses
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct

from mcad.api.list_page import PageQuery
from mcad.api.questions import Question
from mcad.api.wire import as_int, as_text
from mcad.client.errors import McadError, UnavailableError, one_line
from mcad.client.figures.figures import TRIAL_S, rejected
from mcad.client.figures.polled import ListPage, read_page
from mcad.kube import plain
from mcad.kube.errors import BadAnswer, OutcomeUnknown
from mcad.kube.port import Request, Response

Json = dict[str, Any]

ANSWER_S = 10.0
TEXT_MAX = 400  # characters of an error that are shown


def _text(answer: Response) -> str:
    return answer.body.decode(errors="replace") if isinstance(answer.body, bytes) else ""


class ServerFigures(Struct, frozen=True):
    """The HTTP port of a dispatcher; implements ``mcad.client.figures.figures.Figures``."""

    url: str
    max_age_s: int = 0  # of lists of AppWrappers
    request_timeout_s: float | None = None  # of every request, instead of their own
    only: None = None
    notes: tuple[str, ...] = ()

    is_stored = False

    async def renewed(self) -> ServerFigures:
        """The same: a dispatcher that is asked directly has no notes."""
        return self

    async def labelled(self, selector: str) -> frozenset[str]:
        """Not supported: the HTTP port serves figures, not metadata."""
        raise McadError(f"--server does not serve labels: omit --server, or -l {selector}")

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        """One row per AppWrapper, the queue first and in order."""
        wishes = {"starts": "true"} if with_starts else {}
        rows, _ = await self._list("queue" if waiting_only else "appwrappers", wishes)
        return rows

    async def page(self, query: PageQuery) -> ListPage:
        """One page of the rows, with start time estimates."""
        rows, answer = await self._list("appwrappers", {"starts": "true", **query.params})
        try:
            return read_page(rows, answer)
        except ValueError as error:
            raise self._strange(str(error)) from error

    async def _list(self, path: str, wishes: dict[str, str]) -> tuple[list[Json], Json]:
        """The rows of an answer, and the answer."""
        wishes = wishes | ({"maxAge": str(self.max_age_s)} if self.max_age_s else {})
        answer = await self._get(f"{path}?{urlencode(wishes)}".rstrip("?"))
        rows = answer.get("items") if answer is not None else None
        if answer is None or not isinstance(rows, list):
            raise self._strange("no list of AppWrappers")
        return rows, answer

    async def capacity(self) -> Json:
        """Capacity per node and in total."""
        answer = await self._get("capacity")
        if answer is None or not {"nodes", "total", "unplaced"} <= answer.keys():
            raise self._strange("no figures of nodes")
        return answer

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full; None if it is not known."""
        return await self._get(f"appwrappers/{quote(namespace, '')}/{quote(name, '')}")

    async def why(self, namespace: str, name: str) -> Json | None:
        """The same with what would start it now."""
        path = f"appwrappers/{quote(namespace, '')}/{quote(name, '')}/why"
        return await self._get(path, timeout_s=TRIAL_S)

    async def what_if(self, question: Question, own: str) -> Json:
        """What would differ; names without a namespace are of ``own``."""
        body: Json = {"spec": question.document}
        answer = await self._get(f"what-if/{quote(own, '')}", body, timeout_s=TRIAL_S)
        if answer is None:
            raise self._strange("no answer to what-if")
        return answer

    async def quota(self) -> Json:
        """All quota trees."""
        answer = await self._get("quota")
        if answer is None or not {"enabled", "trees"} <= answer.keys():
            raise self._strange("no quota trees")
        return answer

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with its holders and its queue; None if it does not exist."""
        return await self._get(f"quota/{quote(tree, '')}/{quote(node, '')}")

    async def _get(
        self, path: str, body: Json | None = None, *, timeout_s: float = ANSWER_S
    ) -> Json | None:
        """GET the JSON object at a path, or POST a body; None if there is none."""
        request = Request("GET" if body is None else "POST", f"/api/v1/{path}", body=body)
        try:
            answer = await plain.send(self.url, request, self.request_timeout_s or timeout_s)
        except OutcomeUnknown as error:
            raise UnavailableError(
                f"the dispatcher at {self.url} cannot be reached: {error}; --server is the address "
                "of its HTTP port, for example http://127.0.0.1:8080"
            ) from error
        if answer.status == 404 and answer.body == b"null":
            return None
        if answer.status in (403, 503) and (said := one_line(_text(answer)[:TEXT_MAX])):
            raise UnavailableError(f"the dispatcher at {self.url} does not answer: {said}")
        if answer.status not in (200, 422):
            raise self._strange(f"{answer.status} {responses.get(answer.status, '')}".strip())
        try:
            view = answer.json()
        except BadAnswer as error:
            raise self._strange("no JSON object") from error
        if answer.status == 422:
            faults = tuple((as_int(one[0]), as_text(one[1])) for one in view.get("faults", ()))
            missing = view.get("missing") is True
            raise rejected(as_text(view.get("message")), faults, missing=missing)
        return view

    def _strange(self, what: str) -> McadError:
        return McadError(f"{self.url} is not an mcad dispatcher ({what}); is it the right port?")


def server_at(address: str, max_age_s: int = 0) -> ServerFigures:
    """The server at a URL; ``host:port`` is enough. ``max_age_s`` is that of a ``Pace``."""
    url = address if "://" in address else f"http://{address}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise McadError(f"--server {address}: give a URL such as http://127.0.0.1:8080")
    return ServerFigures(url.rstrip("/"), max_age_s)
