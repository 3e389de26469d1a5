"""Reads from a pod why one of its containers does not run, in kubelet's words.

Kubelet says it in ``state.waiting`` of a container status, with one of the reasons below
(``pkg/kubelet/images``, ``pkg/kubelet/kuberuntime`` and ``pkg/kubelet/container`` of Kubernetes
1.36, ``pkg/errors`` of cri-api). It tries again and again, and some of its words change with each
try. The record has the words that stay: those of two tries of a pod are equal, and so are those of
two pods with the same fault.
"""

import re

from mcad.api.wire import Json, Map, as_int, as_list, as_map, as_text
from mcad.core.state.model import Stuck, StuckReason
from mcad.core.state.quotation import quoted

STATUSES = ("initContainerStatuses", "containerStatuses")
"""The fields with the container statuses of a pod, in the order in which its containers start."""

_BACK_OFF = "ImagePullBackOff"
_PULLS = frozenset({"ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed"})
_IMAGE = {_BACK_OFF, *_PULLS, "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
_CONTAINER = {
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    *("PreCreateHookError", "PreStartHookError", "PostStartHookError"),
    *("CreatePodSandboxError", "ConfigPodSandboxError", "ImageVolumeMountFailed"),
}
_KINDS = {
    **dict.fromkeys(_IMAGE, StuckReason.IMAGE),
    **dict.fromkeys(_CONTAINER, StuckReason.CONTAINER),
    "CrashLoopBackOff": StuckReason.CRASH,
}

_PULLING = re.compile(r'Back-off pulling image "([^"]+)": (.+)')
_RESTARTING = re.compile(r"(back-off) \S+ (restarting failed container)=.*")
_SOURCE = re.compile(r"(?<!\S)\S+:\d+->")
"""Of a connection that failed: each has a port of its own. It is looked for at the beginning of a
word only: a message has the image as the user wrote it, which may be a word of a megabyte."""

_MESSAGE_MAX = 256
_END = 100  # characters of the end that a cut message keeps: the cause stands there


def stuck_container(status: Map) -> Stuck | None:
    """The first container that cannot start, or does not stay up; None if there is none."""
    for key in STATUSES:
        for one in as_list(status.get(key)):
            found = _stuck(as_map(one))
            if found is not None:
                return found
    return None


def _stuck(container: Map) -> Stuck | None:
    waiting = as_map(container.get("state")).get("waiting")
    return _told(container, as_map(waiting)) if waiting else None


def _told(container: Map, waiting: Map) -> Stuck | None:
    reason = as_text(waiting.get("reason"))
    kind = _KINDS.get(reason)
    if kind is None:
        return None
    words, end = _SOURCE.sub("", " ".join(as_text(waiting.get("message")).split())), ""
    if reason == _BACK_OFF:
        words = _cause_of_pull(words)
    elif reason in _PULLS:  # kubelet alternates between it and the wait for the next pull
        reason, words = _BACK_OFF, _joined(reason, words)
    elif kind is StuckReason.CRASH:
        words, end = _RESTARTING.sub(r"\1 \2", words), _last_end(container.get("lastState"))
    title = _joined(f"container {as_text(container.get('name'))}", reason)
    left = _MESSAGE_MAX - len(title) - len(end) - 6  # with colons and quotation marks
    return Stuck(kind, _joined(title, quoted(_cut(words, left)), end))


def _cause_of_pull(words: str) -> str:
    """The words of the failed pull, if they name the image; else all of them.

    Older kubelets do not repeat the cause while they wait for the next pull.
    """
    found = _PULLING.fullmatch(words)
    return found[2] if found and found[1] in found[2] else words


def _last_end(state: Json) -> str:
    """How a container that is started again ended: kubelet's message does not say it."""
    ended = as_map(as_map(state).get("terminated"))
    if not ended:
        return ""
    reason = as_text(ended.get("reason"))
    return f"last exit code {as_int(ended.get('exitCode'))}" + (f" ({reason})" if reason else "")


def _joined(*parts: str) -> str:
    return ": ".join(filter(None, parts))


def _cut(words: str, length: int) -> str:
    if len(words) <= length:
        return words
    return f"{words[: max(0, length - _END - 3)]}...{words[-_END:]}"
