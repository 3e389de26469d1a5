"""The pods of Jobs: making them, and letting go of those whose Job does not count any more."""

from __future__ import annotations

from collections.abc import Iterable

from mcad.kube.types import Json
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.claims import without_finalizer
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.pods import annotations_of, controller_of, from_template, labels_of
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
TRACKING = "batch.kubernetes.io/job-tracking"
_INDEX_ENV = "JOB_COMPLETION_INDEX"
_BASE_MAX = 58  # of a generated name, so that five characters fit behind it


def finished_condition(job: Json) -> Json | None:
    """The condition Complete or Failed, if the Job has it."""
    for one in (job.get("status") or {}).get("conditions") or ():
        if one["type"] in {"Complete", "Failed"} and one["status"] == "True":
            found: Json = one
            return found
    return None


def is_indexed(job: Json) -> bool:
    """Whether its pods have completion indexes."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_tracked(pod: Json) -> bool:
    """Whether it is still to be counted."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def index_of(pod: Json, below: int) -> int | None:
    """Its completion index, if it has one below that number."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() and int(text) < below else None


def parse_indexes(text: str) -> set[int]:
    """``1,3-5`` as a set."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def show_indexes(indexes: Iterable[int]) -> str:
    """The same as text; two neighbours are written apart, as the real controller does."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return ",".join(parts)


def pod_for(job: Json) -> Json:
    """A pod of a Job; it shares its parts with the Job."""
    pod = from_template(job["spec"].get("template") or {}, job)
    finalizers = pod["metadata"].get("finalizers") or []
    if TRACKING not in finalizers:
        pod["metadata"]["finalizers"] = [*finalizers, TRACKING]
    if is_indexed(job):
        pod["spec"] = _with_index_env(pod["spec"])
    return pod


def with_index(job: Json, pod: Json, index: int) -> Json:
    """``pod`` with a completion index."""
    metadata, name = pod["metadata"], job["metadata"]["name"]
    ending = f"-{index}-"
    return {
        "metadata": metadata
        | {
            "generateName": name[: _BASE_MAX - len(ending)] + ending,
            "annotations": annotations_of(pod) | {COMPLETION_INDEX: str(index)},
            "labels": labels_of(pod) | {COMPLETION_INDEX: str(index)},
        },
        "spec": pod["spec"] | {"hostname": f"{name}-{index}"},
    }


def _with_index_env(spec: Json) -> Json:
    field = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}
    variable = {"name": _INDEX_ENV, "valueFrom": {"fieldRef": field}}

    def with_env(container: Json) -> Json:
        present = container.get("env") or []
        if any(one.get("name") == _INDEX_ENV for one in present):
            return container
        return container | {"env": [*present, variable]}

    lists = ("initContainers", "containers")
    return spec | {name: [with_env(one) for one in spec[name]] for name in lists if spec.get(name)}


class JobPodReleaser(Controller):
    """Takes the tracking finalizer off pods whose Job is gone or has finished."""

    def __init__(self, registry: Registry, pods: OwnedIndex) -> None:
        super().__init__(registry)
        self._pods = pods
        self._jobs = registry.kind("batch/v1", "Job")

    def start(self) -> None:
        self._pods.start()
        self.watch(self._pods.kind, self._on_pod)
        self._unsubscribe.append(self.registry.store.listen(self._jobs.storage, self._on_job))

    def reconcile(self, key: Key) -> None:
        """Let one pod go, if it is to be let go."""
        pod = self.registry.find(self._pods.kind, key)
        if pod is not None and is_tracked(pod) and not self._is_counted(pod):
            self.registry.patch(
                self._pods.kind, key, lambda live: without_finalizer(live, TRACKING)
            )

    def _is_counted(self, pod: Json) -> bool:
        owner = controller_of(pod)
        if owner is None or owner["kind"] != "Job":
            return False
        job = self.registry.find(self._jobs, (pod["metadata"]["namespace"], owner["name"]))
        if job is None or job["metadata"]["uid"] != owner["uid"]:
            return False
        return finished_condition(job) is None

    def _on_pod(self, change: Change) -> None:
        if change.type != "DELETED" and is_tracked(change.obj) and not self._is_counted(change.obj):
            self.enqueue(change.key)

    def _on_job(self, change: Change) -> None:
        if change.type == "DELETED" or finished_condition(change.obj) is not None:
            for pod in self._pods.owned(change.obj["metadata"]["uid"]):
                if is_tracked(pod):
                    self.enqueue(key_of(pod))
