"""All errors of the transport between us and an API server.

Every failure of this package is a ``KubeError``. It classifies, it decides nothing: what a 409
means for an AppWrapper is the core's business.
"""

import json
from http import HTTPStatus

from mcad.kube.types import Json

RETRY_AFTER_S_MAX = 3600.0  # no server means more; a date far ahead is a broken clock
MESSAGE_CHARS_MAX = 8192  # a 422 can quote a whole object; conditions and logs need far less
SNIPPET_CHARS_MAX = 256  # of a body that is not a Status, a proxy's HTML page for example


class KubeError(Exception):
    """Base of all errors of the transport; ``str()`` is fit for people."""

    retry_after: float | None = None
    """Seconds after which the server asked to come back, if it did."""

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later without anything else changing."""
        return False


class ConfigError(KubeError):
    """The configuration cannot lead to an API server; the message names file, context, remedy."""


class OutcomeUnknown(KubeError):  # noqa: N818 - names a state of knowledge, like its children
    """No readable answer came. A write may or may not have been, or yet be, applied (P5)."""

    @property
    def transient(self) -> bool:
        """Always: asking again is the only way to find out."""
        return True


class ConnectionLost(OutcomeUnknown):
    """The connection failed before, during or after the request."""


class RequestTimeout(OutcomeUnknown):
    """The answer, or the next byte of a stream, did not come in time."""


class BadAnswer(OutcomeUnknown):
    """An answer of success came, but its body is not the JSON object that was promised."""


class Fenced(KubeError):  # noqa: N818 - names a state, like its neighbours
    """A write was not sent, because this process may not write at present."""


class ApiError(KubeError):
    """The server answered and refused: ``status``, and the fields of its Status object."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        *,
        details: Json | None = None,
        retry_after: float | None = None,
    ) -> None:
        """``retry_after`` is in seconds from now."""
        self.status = status
        self.reason = reason or _phrase(status).replace(" ", "")
        self.message = message[:MESSAGE_CHARS_MAX]
        self.details: Json = details or {}
        self.retry_after = retry_after
        super().__init__(f"{status} {self.reason}: {self.message}")

    @property
    def transient(self) -> bool:
        """429 and 5xx, except 501 Not Implemented, which waiting does not change."""
        return self.throttled or (self.status >= 500 and self.status != 501)

    @property
    def throttled(self) -> bool:
        """429: the server did not process the request."""
        return self.status == 429

    @property
    def already_exists(self) -> bool:
        """409 because an object of that name exists."""
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """409 because a resourceVersion or uid precondition does not hold (any more)."""
        return self.status == 409 and not self.already_exists

    @property
    def not_found(self) -> bool:
        """404: no such object, or no such kind."""
        return self.status == 404

    @property
    def gone(self) -> bool:
        """410: the resourceVersion or continue token is too old."""
        return self.status == 410

    @property
    def unauthorized(self) -> bool:
        """401: the credential was not accepted; nothing was processed."""
        return self.status == 401

    @property
    def forbidden(self) -> bool:
        """403: RBAC, quota or admission."""
        return self.status == 403

    @property
    def invalid(self) -> bool:
        """422: the object violates a schema or a validation rule."""
        return self.status == 422

    @property
    def namespace_terminating(self) -> bool:
        """403 because the namespace is being deleted: nothing can be created in it any more."""
        causes = self.details.get("causes")
        return self.forbidden and any(
            isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating"
            for cause in (causes if isinstance(causes, list) else ())
        )


def api_error(status: int, body: Json | bytes, retry_after: float | None = None) -> ApiError:
    """The error that an answer means. Any body will do: a Status, HTML, half a JSON, nothing.

    ``retry_after`` (seconds) is that of the header; a Status may carry one of its own.
    """
    answer = body if isinstance(body, dict) else _object_or_none(body)
    if answer is None or answer.get("kind") != "Status":
        text = body.decode(errors="replace") if isinstance(body, bytes) else json.dumps(body)
        return ApiError(status, message=text[:SNIPPET_CHARS_MAX].strip(), retry_after=retry_after)
    return status_error(answer, status, retry_after)


def status_error(
    status_object: Json, status: int = 0, retry_after: float | None = None
) -> ApiError:
    """The error of a Status object; ``status`` 0 takes the object's own ``code`` (in-band)."""
    details = status_object.get("details")
    details = details if isinstance(details, dict) else {}
    seconds = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(seconds, int) and seconds > 0:
        retry_after = min(float(seconds), RETRY_AFTER_S_MAX)
    code = status_object.get("code")
    return ApiError(
        status or (code if isinstance(code, int) and code > 0 else 500),
        str(status_object.get("reason") or ""),
        str(status_object.get("message") or ""),
        details=details,
        retry_after=retry_after,
    )


def _object_or_none(body: bytes) -> Json | None:
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
