"""Containers that a kubelet cannot create: no image can be pulled, or a ConfigMap is missing.

After ``pkg/kubelet/images/image_manager.go`` and ``pkg/kubelet/kuberuntime`` of Kubernetes 1.36: a
pull is tried again after 10 s, 20 s, 40 s and so on up to 5 minutes, and in between the kubelet
says ImagePullBackOff. A volume that cannot be mounted leaves ContainerCreating in the status, and
an Event at each try (``pkg/kubelet/volumemanager``). What fails is said by annotations
(commands.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from mcad.kube.types import Json
from mcad.sim.controllers.commands import CONFIG_FAILS, MOUNT_FAILS, PULL_FAILS, noted_s
from mcad.sim.controllers.events import Recorder

_FIRST_BACKOFF_S, _BACKOFF_S_MAX = 10.0, 300.0
_SHOWN_S = 2.0  # of a failed pull, before the kubelet says that it backs off
_MISSING = 'configmap "settings" not found'
_MOUNT_RETRY_S = 122.0  # the longest pause of the kubelet between two tries
_CREATING = "ContainerCreating"


class Refusal(NamedTuple):
    """Why no container is created; ``again_s`` is when to look again, inf for never."""

    reason: str
    again_s: float

    @property
    def is_silent(self) -> bool:
        """Whether the status does not say it."""
        return self.reason == _CREATING

    def waiting(self, container: Json) -> Json:
        """``state.waiting`` of a container."""
        return {"reason": self.reason, "message": _message(self.reason, container)}

    def record(self, pod: Json, recorder: Recorder) -> None:
        """Say it in Events."""
        if self.is_silent:
            failed = f'MountVolume.SetUp failed for volume "settings" : {_MISSING}'
            recorder.warning(pod, "FailedMount", failed)
            return
        for container in pod["spec"]["containers"]:
            path, image = f"spec.containers{{{container['name']}}}", container.get("image", "")
            error = self.reason if "Image" in self.reason else _MISSING
            if self.reason == "ErrImagePull":
                recorder.normal(pod, "Pulling", f'Pulling image "{image}"', path)
                recorder.warning(pod, "Failed", f'Failed to pull image "{image}": {_cause(image)}')
            elif self.reason == "ImagePullBackOff":
                recorder.normal(pod, "BackOff", f'Back-off pulling image "{image}"', path)
            recorder.warning(pod, "Failed", f"Error: {error}", path)


@dataclass(slots=True)
class Hold:
    """What keeps the containers of one pod from being created, and the pulls so far."""

    mount_until_s: float
    pull_until_s: float
    config_until_s: float
    tries: int = 0
    tried_s: float = -inf

    @classmethod
    def of(cls, notes: Mapping[str, str], begin_s: float) -> Hold | None:
        """By the annotations of the pod; None if nothing does."""
        mount_s, pull_s, config_s = (
            begin_s + noted_s(notes, one) for one in (MOUNT_FAILS, PULL_FAILS, CONFIG_FAILS)
        )
        is_held = max(mount_s, pull_s, config_s) > begin_s
        return cls(mount_s, pull_s, config_s) if is_held else None

    def check(self, now_s: float) -> Refusal | None:
        """Why the containers cannot be created now, None if they can be."""
        if now_s < self.mount_until_s:
            return Refusal(_CREATING, min(self.mount_until_s, now_s + _MOUNT_RETRY_S))
        if self.tries and now_s < self.tried_s + _SHOWN_S:
            return Refusal("ErrImagePull", self.tried_s + _SHOWN_S)
        if self.tries and now_s < self._next_s:
            return Refusal("ImagePullBackOff", self._next_s)
        if now_s < self.pull_until_s:
            self.tries, self.tried_s = self.tries + 1, now_s
            return Refusal("ErrImagePull", now_s + _SHOWN_S)
        self.tries = 0
        if now_s < self.config_until_s:
            return Refusal("CreateContainerConfigError", self.config_until_s)
        return None

    @property
    def _next_s(self) -> float:
        wait_s = float(min(_FIRST_BACKOFF_S * 2 ** min(self.tries - 1, 10), _BACKOFF_S_MAX))
        return self.tried_s + wait_s


def _cause(image: str) -> str:
    return f'failed to pull and unpack image "{image}": not found'


def _message(reason: str, container: Json) -> str:
    image = container.get("image", "")
    if reason == "ErrImagePull":
        return _cause(image)
    if reason == "ImagePullBackOff":
        return f'Back-off pulling image "{image}": ErrImagePull: {_cause(image)}'
    return _MISSING
