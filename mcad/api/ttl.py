"""How long an object is kept after its end, by the field with which its controller removes it.

A controller may remove an object before its outcome is on record: no dispatcher runs, or it does
not watch at that moment. So the object is created without the field, and the dispatcher deletes it
that long after its end, once the outcome is on record.

Facts: JobSpec.ttlSecondsAfterFinished of batch/v1 (Kubernetes 1.36, ttlafterfinished controller);
JobSetSpec.ttlSecondsAfterFinished of JobSet 0.8.2, v1alpha2; RunPolicy.ttlSecondsAfterFinished of
training-operator 1.9.3, v1 (CleanupJob of pkg/controller.v1/common), and of mpi-operator 0.6.0,
v2beta1, where it is that of the launcher's Job; SparkApplicationSpec.timeToLiveSeconds of
spark-operator 2.4.0, v1beta2. KubeRay removes a RayJob where DeleteSelf says so:
RayJobSpec.deletionPolicy of 1.4.2, with ttlSecondsAfterFinished; RayJobSpec.deletionStrategy of
1.6.0 (onSuccess and onFailure, or deletionRules with ttlSeconds). ttlSecondsAfterFinished alone is
that of the RayCluster. TrainJobs (trainer 2.0.0) and LeaderWorkerSets (0.7.0) have no such field.
"""

from collections.abc import Callable, Mapping

from mcad.api.durations import clamp_seconds
from mcad.api.wire import Json, Map, as_int, as_list, as_map, as_text, dig
from mcad.core.state.units import SECOND, Duration

_Edit = tuple[Map, str, Json]  # the value of a key from now on, None to remove the key
_Found = tuple[int, list[_Edit]] | None  # the seconds, and how to leave them out

_SELF = "DeleteSelf"


def _at(path: str) -> Callable[[Map], _Found]:
    """A number of seconds at a dotted path; a value that the API server refuses is left to it."""
    *keys, last = path.split(".")

    def find(obj: Map) -> _Found:
        holder = as_map(dig(obj, *keys))
        seconds = as_int(holder.get(last), -1)
        return (seconds, [(holder, last, None)]) if seconds >= 0 else None

    return find


def _of_ray_job(obj: Map) -> _Found:
    """Where a RayJob deletes itself after one of its outcomes only, KubeRay goes on doing so."""
    spec = as_map(obj.get("spec"))
    seconds = max(0, as_int(spec.get("ttlSecondsAfterFinished")))
    if spec.get("deletionPolicy") == _SELF:
        return seconds, [(spec, "deletionPolicy", None)]
    strategy = as_map(spec.get("deletionStrategy"))
    if all(dig(strategy, one, "policy") == _SELF for one in ("onSuccess", "onFailure")):
        return seconds, [(spec, "deletionStrategy", None)]
    rules = [as_map(one) for one in as_list(strategy.get("deletionRules"))]
    own = [as_map(one.get("condition")) for one in rules if one.get("policy") == _SELF]
    if {_outcome(one) for one in own} != {"succeeded", "failed"}:
        return None
    kept = [one for one in rules if one.get("policy") != _SELF]
    edit: _Edit = (strategy, "deletionRules", kept) if kept else (spec, "deletionStrategy", None)
    return max(0, *(as_int(one.get("ttlSeconds")) for one in own)), [edit]


def _outcome(condition: Map) -> str:
    return as_text(condition.get("jobStatus") or condition.get("jobDeploymentStatus")).lower()


_AFTER_FINISHED = _at("spec.ttlSecondsAfterFinished")
_RUN_POLICY = _at("spec.runPolicy.ttlSecondsAfterFinished")

_TABLE: Mapping[tuple[str, str], Callable[[Map], _Found]] = {
    ("batch", "Job"): _AFTER_FINISHED,
    ("jobset.x-k8s.io", "JobSet"): _AFTER_FINISHED,
    ("kubeflow.org", "PyTorchJob"): _RUN_POLICY,
    ("kubeflow.org", "TFJob"): _RUN_POLICY,
    ("kubeflow.org", "XGBoostJob"): _RUN_POLICY,
    ("kubeflow.org", "PaddleJob"): _RUN_POLICY,
    ("kubeflow.org", "JAXJob"): _RUN_POLICY,
    ("kubeflow.org", "MPIJob"): _RUN_POLICY,
    ("ray.io", "RayJob"): _of_ray_job,
    ("sparkoperator.k8s.io", "SparkApplication"): _at("spec.timeToLiveSeconds"),
}


def _find(manifest: Map, group: str, kind: str) -> _Found:
    find = _TABLE.get((group, kind))
    return find(manifest) if find is not None else None


def ttl_of(manifest: Map, group: str, kind: str) -> Duration | None:
    """How long the object is kept after its end, at most a year; None for ever."""
    found = _find(manifest, group, kind)
    return None if found is None else clamp_seconds(found[0]) * SECOND


def leave_out_ttl(manifest: Map, group: str, kind: str) -> None:
    """Remove the field from a manifest."""
    for holder, key, value in (_find(manifest, group, kind) or (0, []))[1]:
        if value is None:
            del holder[key]
        else:
            holder[key] = value
