"""Reads, from Events, why pods are not created or not started, and what took a bare Pod away.

The first two are for users. The last decides whether a Pod that is gone is tried again: without the
right to list Events, or without an answer, a client deleted it.
"""

import logging
import re
from collections.abc import Iterator
from typing import NamedTuple

from mcad.api.catalog import WELL_KNOWN
from mcad.api.rbac import OWNED_THROUGH
from mcad.api.wire import Json, Map, as_list, as_map, as_text, dig, parse_instant
from mcad.controller.request_failures import answer_of
from mcad.core.commands import ReadWarnings
from mcad.core.state.model import ObjectRef
from mcad.core.state.quotation import quoted
from mcad.core.state.units import SECOND, Instant
from mcad.kube.client import Client
from mcad.kube.errors import KubeError
from mcad.kube.port import Request
from mcad.kube.resource import Resource

_log = logging.getLogger(__name__)

_EVENTS = Resource("", "v1", "events", "Event")
_TIMEOUT_S = 5.0  # reports of other AppWrappers may wait for it
_WORDS_MAX = 512

# One page. It comes in the order of names, so those about pods must not fill it: they are the mass.
_PARAMS = {"fieldSelector": "type=Warning,involvedObject.kind!=Pod", "limit": "500"}

_REASON = re.compile(r"fail\w*creat|creat\w*fail|SubmissionFailed", re.IGNORECASE)
"""``FailedCreate`` of Kubernetes and LeaderWorkerSet, ``FailedCreatePod`` of the training operator,
``FailedToCreateHeadPod`` of KubeRay, ``HeadlessServiceCreationFailed`` of JobSet,
``TrainJobResourcesCreationFailed`` of Trainer, ``SparkApplicationSubmissionFailed``."""

_TAKEN = frozenset({"Preempted", "TaintManagerEviction", "Evicted", "NodeNotReady", "Preempting"})
"""What kube-scheduler, the taint eviction controller, kubelet and the node lifecycle controller say
of a pod that they take away (Kubernetes 1.36)."""

_NOT_STARTED = frozenset(
    {
        "FailedAttachVolume",
        "FailedCreatePodContainer",
        "FailedCreatePodSandBox",
        "FailedMapVolume",
        "FailedMount",
        "FailedPrepareDynamicResources",
        "NetworkNotReady",
    }
)
"""What kubelet (``pkg/kubelet/events/event.go``, Kubernetes 1.36) and the attach/detach controller
say of a pod that has no containers yet, and that its status does not say."""

_MESSAGE = re.compile(r"pod created failed")
"""Of the MPI operators, with a reason that they have for other faults, too (``MPIJobFailed``)."""

_WELL_KNOWN = frozenset((one.group, one.resource) for one in WELL_KNOWN)
_COMBINED = "(combined from similar events): "  # client-go, in front of the latest message

_TIMES = (
    ("series", "lastObservedTime"),
    ("lastTimestamp",),
    ("eventTime",),
    ("firstTimestamp",),
    ("metadata", "creationTimestamp"),
)


class _Warning(NamedTuple):
    """An Event that counts. The latest is the greatest: names end with the time in nanoseconds."""

    at: Instant
    name: str
    words: str


class PodWarnings:
    """Reads the Warning Events about items."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._logged: set[str] = set()

    async def read(self, command: ReadWarnings) -> str:
        """The latest words that say why pods of the item are not created, "" if there are none."""
        ref = command.ref
        try:
            request = Request("GET", _EVENTS.path(ref.namespace), _params(ref))
            answer = await self._client.read(request, _TIMEOUT_S)
        except KubeError as error:
            self._log_once(ref, error)
            return ""
        found = max(_warnings(answer.get("items"), command), default=None)
        return found.words if found else ""

    def _log_once(self, ref: ObjectRef, error: KubeError) -> None:
        """Log the first failure of each kind."""
        reason = answer_of(error).reason
        if reason not in self._logged:
            self._logged.add(reason)
            _log.warning("Events cannot be listed object=%s error=%s", ref, error)


def _params(ref: ObjectRef) -> dict[str, str]:
    if not _is_pod(ref):
        return _PARAMS
    about = f"involvedObject.kind=Pod,involvedObject.name={ref.name}"
    return _PARAMS | {"fieldSelector": about}


def _is_pod(ref: ObjectRef) -> bool:
    return (ref.group, ref.kind) == ("", "Pod")


def _warnings(events: Json, command: ReadWarnings) -> Iterator[_Warning]:
    since = command.since - command.since % SECOND  # most times of Events are whole seconds
    counts = _says_why
    if _is_pod(command.ref):
        counts = _tells_no_start if command.pod else _has_taken
    for one in map(as_map, as_list(events)):
        about = as_map(one.get("involvedObject"))
        at = max(parse_instant(dig(one, *keys)) for keys in _TIMES)
        is_other = command.pod and as_text(about.get("uid")) != command.pod
        if at >= since and counts(one) and _is_between(about, command.ref) and not is_other:
            name = as_text(dig(one, "metadata", "name"))
            yield _Warning(at, name, _words(one, about, command.ref.namespace))


def _says_why(event: Map) -> bool:
    """Whether it says that something could not be created."""
    reason, message = as_text(event.get("reason")), as_text(event.get("message"))
    return bool(_REASON.search(reason) or _MESSAGE.search(message))


def _has_taken(event: Map) -> bool:
    """Whether it says that the cluster took a pod away."""
    return as_text(event.get("reason")) in _TAKEN


def _tells_no_start(event: Map) -> bool:
    """Whether it says that the node cannot start a pod."""
    return as_text(event.get("reason")) in _NOT_STARTED


def _is_between(about: Map, ref: ObjectRef) -> bool:
    """Whether an Event is about the item, or about what stands between it and its pods.

    Such an object has the name of the item, or a longer one. Between a kind that is not well known
    and its pods may be any other kind.
    """
    kind, name = as_text(about.get("kind")), as_text(about.get("name"))
    if kind == ref.kind:
        return name == ref.name
    if name != ref.name and not name.startswith(f"{ref.name}-"):
        return False
    pair = (ref.group, ref.resource)
    between = (plural for _, plural in OWNED_THROUGH.get(pair, ()))
    return pair not in _WELL_KNOWN or f"{kind.lower()}s" in between


def _words(event: Map, about: Map, namespace: str) -> str:
    message = as_text(event.get("message")).removeprefix(_COMBINED)
    said = " ".join(message.split()) or as_text(event.get("reason"))
    title = f"{as_text(about.get('kind'))} {namespace}/{as_text(about.get('name'))}: "
    return title + quoted(said[: _WORDS_MAX - len(title) - 2])
