"""What an API server answers instead of an object: ``Status``, worded as kube-apiserver does.

Source: ``k8s.io/apimachinery/pkg/api/errors`` for codes, reasons and details; the contract suite
compares them with a real server.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcad.kube.types import Json

if TYPE_CHECKING:
    from mcad.sim.kinds import Kind


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """One fault of an object, as ``details.causes`` of an Invalid answer lists it."""

    reason: str  # FieldValueRequired, FieldValueInvalid, FieldValueTypeInvalid...
    message: str  # "Required value", 'Invalid value: "x": must be ...'
    field: str  # "spec.containers[0].name"


class Failure(Exception):  # noqa: N818 - an answer like any other, not a fault of the simulator
    """A refusal by the API server."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        retry_after_s: int = 0,
    ) -> None:
        """``code`` is the HTTP status; ``reason`` may be empty (Go's StatusReasonUnknown)."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s

    def status(self) -> Json:
        answer: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            answer["reason"] = self.reason
        if self.details is not None:
            answer["details"] = self.details
        answer["code"] = self.code
        return answer


class Undecodable(Failure):
    """400 for an object that is not what its kind says; in a patch it is another answer."""

    def __init__(self, kind: Kind, why: str) -> None:
        """``why`` is in the words of Go's decoder."""
        self.why = why
        title = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
        super().__init__(400, "BadRequest", f"{title}: {why}")


def success(kind: Kind, name: str, uid: str) -> Json:
    """The Status that a completed deletion answers with."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _details(kind, name) | {"uid": uid},
    }


def not_found(kind: Kind, name: str) -> Failure:
    """404 for an object."""
    return Failure(404, "NotFound", f'{_qualified(kind)} "{name}" not found', _details(kind, name))


def no_such_resource() -> Failure:
    """404 for a kind, or a path that leads nowhere."""
    message = "the server could not find the requested resource"
    return Failure(404, "NotFound", message, {})


def already_exists(kind: Kind, name: str, *, is_going: bool = False) -> Failure:
    """409 for a create under a name that is taken, if only until its deletion is done."""
    message = f'{_qualified(kind)} "{name}" already exists'
    if is_going:
        message = f"object is being deleted: {message}"
    return Failure(409, "AlreadyExists", message, _details(kind, name))


def conflict(kind: Kind, name: str, message: str = MODIFIED) -> Failure:
    """409 for a version or a precondition that does not hold."""
    text = f'Operation cannot be fulfilled on {_qualified(kind)} "{name}": {message}'
    return Failure(409, "Conflict", text, _details(kind, name))


def listed(causes: Sequence[Cause]) -> str:
    """Faults in one text, none of them twice."""
    faults = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"


def precondition_failed(kind: Kind, name: str, message: str) -> Failure:
    """409 for a precondition of a deletion, which is worded with the kind, not the resource."""
    title = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    text = f'Operation cannot be fulfilled on {title} "{name}": {message}'
    return Failure(409, "Conflict", text, _details(kind, name) | {"kind": kind.kind})


def invalid_options(options: str, causes: Sequence[Cause]) -> Failure:
    """422 for the parameters of a request, such as ``ListOptions``."""
    return _invalid("meta.k8s.io", options, "", causes)


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> Failure:
    """422 for an object that violates a schema or a rule."""
    return _invalid(kind.group, kind.kind, name, causes)


def _invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> Failure:
    details = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    listing = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    title = f"{kind}.{group}" if group else kind
    message = f'{title} "{name}" is invalid: {listed(causes)}'
    return Failure(422, "Invalid", message, details | {"causes": listing})


def invalid_patch(obj: Any, why: str) -> Failure:
    """422 for a patch that makes something else of an object; real servers name no kind there."""
    text = json.dumps(json.dumps(obj, separators=(",", ":")))
    return _invalid(
        "", "", "", [Cause("FieldValueInvalid", f"Invalid value: {text}: {why}", "patch")]
    )


def unversioned(kind: Kind, name: str) -> Failure:
    """422 for an update without a version where one is needed; worded with the resource."""
    text = "Invalid value: 0: must be specified for an update"
    cause = Cause("FieldValueInvalid", text, "metadata.resourceVersion")
    return _invalid(kind.group, kind.plural, name, [cause])


def bad_request(message: str) -> Failure:
    """400."""
    return Failure(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, message: str, causes: Sequence[Cause] = ()) -> Failure:
    """403 by admission."""
    details = _details(kind, name)
    if causes:
        details["causes"] = [
            {"reason": c.reason, "message": c.message, "field": c.field} for c in causes
        ]
    text = f'{_qualified(kind)} "{name}" is forbidden: {message}'
    return Failure(403, "Forbidden", text, details)


def expired(message: str) -> Failure:
    """410 for a version or a continue token that is not kept any more."""
    return Failure(410, "Expired", message)


def not_supported(kind: Kind, verb: str) -> Failure:
    """405 for a verb that a custom kind's subresource does not have."""
    message = f'{verb} is not supported on resources of kind "{_qualified(kind)}"'
    return Failure(405, "MethodNotAllowed", message, _details(kind, ""))


def method_not_allowed() -> Failure:
    """405 for a verb that a kind does not have."""
    message = "the server does not allow this method on the requested resource"
    return Failure(405, "MethodNotAllowed", message, {})


def unsupported_media_type(accepted: Sequence[str]) -> Failure:
    """415 for a body in a format that is not spoken."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return Failure(415, "UnsupportedMediaType", message)


def unsupported_patch() -> Failure:
    """415 for a patch of a built-in kind in a format that is not spoken."""
    return Failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def unsupported_form(spoken: Sequence[str]) -> Failure:
    """406 for a client that wants its JSON in a form that there is not."""
    message = f"only the following media types are accepted: {', '.join(spoken)}"
    return Failure(406, "NotAcceptable", message)


def not_acceptable(spoken: Sequence[str]) -> Failure:
    """406 for a client that does not understand any format that is spoken."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(spoken)}"
    return Failure(406, "NotAcceptable", message, {})


def _qualified(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def _details(kind: Kind, name: str) -> Json:
    details: Json = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    return details | {"kind": kind.plural}
