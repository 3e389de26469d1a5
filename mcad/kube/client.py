"""Kubernetes verbs on plain dicts: paths, parameters, preconditions, paging, retries, errors.

It knows verbs and answers, nothing of what the objects mean. Reads are retried within their
timeout; a write is sent again only when the server says it did not process it (429 with
Retry-After). Everything else of a write is for the caller to judge: ``OutcomeUnknown`` means
unknown, not failed.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from random import Random
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.json import encode

from mcad.kube.clock import Clock
from mcad.kube.decode import Listed, take_list
from mcad.kube.errors import ApiError, BadAnswer, api_error
from mcad.kube.fence import Fence
from mcad.kube.measured import Measured, Observe
from mcad.kube.pages import PAGE_LIMIT, Page, pages_of
from mcad.kube.port import APPLY_PATCH, MERGE_PATCH, NOTHING, Api, Request, Response, nothing
from mcad.kube.resource import Resource
from mcad.kube.retry import Policy, Retrier, idempotent, never, not_processed, parse_retry_after
from mcad.kube.types import Json

TIMEOUT_S = 30.0  # of one call, retries and waits included
IDLE_S = 70.0  # of silence in a watch: bookmarks come every 60 s, events are kept for 75 s
WATCH_S = (300, 600)  # client-go's spread, so that watches do not end together
END_S = 5  # after the time for which a watch was asked, until the server has ended it
READ_ATTEMPT_S = 15.0  # of one attempt of a read, so that one hang leaves room for a second
PAGE_S = 60.0  # of one list page, retries included: the server may have to read etcd

T = TypeVar("T")
Propagation = Literal["Foreground", "Background", "Orphan"]
FieldValidation = Literal["Strict", "Warn", "Ignore"]

_OWN_ACCESS = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
_ACCESS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_TOKENS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")

# The server sends metadata only, and whole objects where it cannot (old aggregated APIs).
METADATA_LIST = {
    "Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
}
_METADATA = {
    "Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
}


class Selection(Struct, frozen=True):
    """What a list or watch covers."""

    namespace: str | None = None  # None: all namespaces
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    def params(self) -> dict[str, str]:
        """The query parameters of the selectors."""
        params = {}
        if self.label_selector:
            params["labelSelector"] = self.label_selector
        if self.field_selector:
            params["fieldSelector"] = self.field_selector
        return params


class CreateOptions(Struct, frozen=True):
    """How to create. ``metadata_only`` shortens the answer to what identifies the object."""

    dry_run: bool = False
    field_validation: FieldValidation | None = None
    as_user: str = ""  # impersonated; a service account brings its groups with it
    metadata_only: bool = False


class Created(Struct, frozen=True):
    """An object as it was created, and what the server warned of: unknown fields, for example."""

    obj: Json
    warnings: tuple[str, ...] = ()


class DeleteOptions(Struct, frozen=True):
    """How to delete. A ``uid`` or ``resource_version`` that does not hold is a conflict."""

    uid: str = ""
    resource_version: str = ""
    propagation: Propagation = "Background"
    grace_period_s: int | None = None  # 0 deletes a pod by force
    dry_run: bool = False


EVERYTHING = Selection()
CREATE = CreateOptions()
DELETE = DeleteOptions()


def of_status(
    resource: Resource, key: tuple[str, str], version: tuple[str, str], status: Json
) -> Json:
    """The body that replaces the status of the object with this (namespace, name), and with this
    (uid, resourceVersion)."""
    (namespace, name), (uid, resource_version) = key, version
    metadata = {"name": name, "uid": uid, "resourceVersion": resource_version}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata | ({"namespace": namespace} if namespace else {}),
        "status": status,
    }


class Client:
    """Verbs against one API server. Every call ends in time and raises only ``KubeError``.

    ``timeout`` is in seconds and covers the retries and waits of a call.
    """

    def __init__(
        self,
        api: Api,
        clock: Clock,
        rng: Random,
        *,
        timeout_s: float = TIMEOUT_S,
        idle_s: float = IDLE_S,
    ) -> None:
        """``timeout_s`` is the default of every call; ``idle_s`` ends a silent watch."""
        self.api = api
        self.clock = clock
        self.rng = rng
        self._retrier = Retrier(clock, rng)
        self._timeout_s = timeout_s
        self._idle_s = idle_s

    def fenced(self, left: Callable[[], float]) -> "Client":
        """The same client with writes that need a permit; see ``Fence``."""
        return Client(
            Fence(self.api, left),
            self.clock,
            self.rng,
            timeout_s=self._timeout_s,
            idle_s=self._idle_s,
        )

    def measured(self, observe: Observe) -> "Client":
        """The same client with every exchange reported; see ``Measured``."""
        return Client(
            Measured(self.api, self.clock, observe),
            self.clock,
            self.rng,
            timeout_s=self._timeout_s,
            idle_s=self._idle_s,
        )

    async def read(
        self, request: Request, timeout: float | None = None, attempt_s: float = READ_ATTEMPT_S
    ) -> Json:
        """The JSON object at any path, ``/version`` for example; one attempt is ``attempt_s``."""
        return await self._send(request, idempotent, timeout, attempt_s)

    async def get(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> Json:
        """One object, read consistently."""
        headers = _METADATA if metadata_only else NOTHING
        return await self.read(
            Request("GET", resource.path(namespace, name), headers=headers), timeout
        )

    def list_pages(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        limit: int = PAGE_LIMIT,
        retry_first_page: bool = True,
        ahead: bool = False,
    ) -> AsyncGenerator[Page, None]:
        """The pages of one consistent list (no resourceVersion: at least as new as now).

        Each page has a timeout of its own. A caller with a backoff of its own retries the first
        page itself; later ones are worth saving and always retried here. ``ahead`` is for long
        lists that are read to their end (pages.py).
        """

        async def ask(token: str, size: int | None) -> Listed:
            params = selection.params()
            if size is not None:
                params["limit"] = str(size)
            if token:
                params["continue"] = token
            again = idempotent if token or retry_first_page else never
            request = _list(resource, selection, params)
            return await self._exchange(_listed, request, again, PAGE_S)

        return pages_of(resource, ask, limit, ahead=ahead)

    async def list_all(
        self, resource: Resource, selection: Selection = EVERYTHING
    ) -> tuple[list[Json], str]:
        """All objects of a consistent list, and its resourceVersion."""
        items: list[Json] = []
        resource_version = ""
        async for page in self.list_pages(resource, selection):
            if page.first:
                items = []
            items += page.items
            resource_version = page.resource_version
        return items, resource_version

    def watch(
        self,
        resource: Resource,
        resource_version: str,
        selection: Selection = EVERYTHING,
        opened: Callable[[], None] = nothing,
        seconds: int = WATCH_S[1],
    ) -> AsyncGenerator[bytes, None]:
        """The lines of one watch from ``resource_version`` on; see ``Api.stream`` for its ends.

        The server is asked to end it after ``seconds``; one that does not is a ``RequestTimeout``.
        """
        params = {
            **selection.params(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        headers = _METADATA if selection.metadata_only else NOTHING
        path = resource.path(selection.namespace)
        request = Request("GET", path, params, headers=headers)
        return self.api.stream(request, min(self._idle_s, seconds + END_S), opened)

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: Json | bytes,
        options: CreateOptions = CREATE,
        timeout: float | None = None,
    ) -> Json:
        return (await self.create_warned(resource, namespace, body, options, timeout)).obj

    async def create_warned(
        self,
        resource: Resource,
        namespace: str | None,
        body: Json | bytes,
        options: CreateOptions = CREATE,
        timeout: float | None = None,
    ) -> Created:
        """The created object, and what the server warned of."""
        params = {}
        if options.dry_run:
            params["dryRun"] = "All"
        if options.field_validation:
            params["fieldValidation"] = options.field_validation
        headers = dict(_METADATA) if options.metadata_only else {}
        headers |= _impersonation(options.as_user)
        request = Request("POST", resource.path(namespace), params, body, headers=headers)
        return await self._exchange(_created, request, not_processed, timeout)

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        options: DeleteOptions = DELETE,
        timeout: float | None = None,
    ) -> Json:
        """Delete one object; the answer is the object, still terminating, or a Status."""
        preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
        body: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": options.propagation,
            "preconditions": {key: value for key, value in preconditions.items() if value},
        }
        if options.grace_period_s is not None:
            body["gracePeriodSeconds"] = options.grace_period_s
        if options.dry_run:
            body["dryRun"] = ["All"]
        request = Request("DELETE", resource.path(namespace, name), body=body)
        return await self._send(request, not_processed, timeout)

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        merge_patch: Json | bytes,
        timeout: float | None = None,
    ) -> Json:
        """Apply a JSON merge patch; ``metadata.resourceVersion`` in it is the fence.

        The answer is the object's metadata only: the new resourceVersion is what matters.
        """
        return await self._patch(resource.path(namespace, name), merge_patch, timeout)

    async def dry_patch(
        self, resource: Resource, namespace: str | None, name: str, merge_patch: Json
    ) -> Json:
        """The checks of ``patch``, and its answer; nothing is changed."""
        path = resource.path(namespace, name)
        return await self._patch(path, merge_patch, None, {"dryRun": "All"})

    async def apply(
        self, resource: Resource, namespace: str | None, name: str, body: Json, manager: str
    ) -> Json:
        """Server-side apply as ``manager``: create the object, or make its fields what ``body``
        says, whichever manager had them."""
        request = Request(
            "PATCH",
            resource.path(namespace, name),
            {"fieldManager": manager, "force": "true"},
            {"apiVersion": resource.api_version, "kind": resource.kind} | body,
            APPLY_PATCH,
        )
        return await self._send(request, not_processed, None)

    async def patch_status(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        merge_patch: Json | bytes,
        timeout: float | None = None,
    ) -> Json:
        """``patch`` of the status subresource."""
        return await self._patch(resource.path(namespace, name, "status"), merge_patch, timeout)

    async def replace_status(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        version: tuple[str, str],
        status: Json,
    ) -> Json:
        """Replace the status of the object with this (uid, resourceVersion); of any other, or of
        another version, it is a conflict. Everything but the status stays.

        The answer is the object's metadata only. A patch costs the API server more: it merges two
        whole objects and decodes the result anew.
        """
        body = encode(of_status(resource, (namespace or "", name), version, status))
        path = resource.path(namespace, name, "status")
        return await self._send(Request("PUT", path, body=body, headers=_METADATA), not_processed)

    async def self_subject_access_review(
        self,
        resource: Resource,
        namespace: str | None,
        verb: str,
        *,
        name: str = "",
        as_user: str = "",
    ) -> bool:
        """Whether RBAC (no quota, no admission) lets us, or ``as_user``, do ``verb``."""
        attributes = {
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "namespace": (namespace or "") if resource.namespaced else "",
            "verb": verb,
            "name": name,
        }
        spec = {"resourceAttributes": attributes}
        status = await self._review(_OWN_ACCESS, spec, _impersonation(as_user))
        return status.get("allowed") is True

    async def subject_access_review(self, spec: Json) -> bool:
        """Whether RBAC lets the subject of ``spec`` (user, groups, extra) do what it names."""
        return (await self._review(_ACCESS, spec)).get("allowed") is True

    async def token_review(self, token: str) -> Json:
        """Whether a bearer token is valid (``authenticated``), and its ``user``."""
        return await self._review(_TOKENS, {"token": token})

    async def create_event(self, namespace: str, event: Json | bytes) -> Json:
        """Record one events.k8s.io/v1 Event as it is; ``recorder.py`` builds them."""
        return await self.create(EVENTS, namespace, event, CreateOptions(metadata_only=True))

    async def _review(
        self, resource: Resource, spec: Json, headers: Mapping[str, str] = NOTHING
    ) -> Json:
        """The status of a review."""
        body: Json = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        # A review changes nothing, so it may be repeated like a read although it is a POST.
        request = Request("POST", resource.path(), body=body, headers=headers)
        answer = await self._send(request, idempotent, None, READ_ATTEMPT_S)
        status = answer.get("status")
        if not isinstance(status, dict):
            raise BadAnswer("an access review came back without a status")
        return status

    async def _patch(
        self,
        path: str,
        merge_patch: Json | bytes,
        timeout: float | None,
        params: Mapping[str, str] = NOTHING,
    ) -> Json:
        request = Request("PATCH", path, params, merge_patch, MERGE_PATCH, _METADATA)
        return await self._send(request, not_processed, timeout)

    async def _send(
        self,
        request: Request,
        again: Policy,
        timeout: float | None = None,
        attempt_s: float | None = None,
    ) -> Json:
        return await self._exchange(Response.json, request, again, timeout, attempt_s)

    async def _exchange(
        self,
        read: Callable[[Response], T],
        request: Request,
        again: Policy,
        timeout: float | None,
        attempt_s: float | None = None,
    ) -> T:
        """What ``read`` makes of the answer; a ``BadAnswer`` of its own is tried again as well."""

        async def attempt(timeout_s: float) -> T:
            answer = await self.api.request(request, timeout_s)
            if not 200 <= answer.status < 300:
                raise self._error(answer)
            return read(answer)

        budget_s = self._timeout_s if timeout is None else timeout
        return await self._retrier.run(attempt, again=again, budget_s=budget_s, attempt_s=attempt_s)

    def _error(self, answer: Response) -> ApiError:
        retry_after = parse_retry_after(answer.headers.get("Retry-After"), self.clock.now_us())
        return api_error(answer.status, answer.body, retry_after)


def _list(resource: Resource, selection: Selection, params: Mapping[str, str]) -> Request:
    headers = METADATA_LIST if selection.metadata_only else NOTHING
    return Request("GET", resource.path(selection.namespace), params, headers=headers)


def _impersonation(user: str) -> Mapping[str, str]:
    return {"Impersonate-User": user} if user else NOTHING


def _created(answer: Response) -> Created:
    return Created(answer.json(), answer.warnings)


def _listed(answer: Response) -> Listed:
    """The objects of a list answer; raises ``BadAnswer``."""
    try:
        return take_list(answer.body)
    except ValueError as error:
        raise BadAnswer(f"not a list: {error}") from error
