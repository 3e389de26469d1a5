"""What a live object says of its pods and of itself: the one place that knows how controllers act.

reading           what a reader gets, and what it makes of it
switches          fields by which a client suspends an object
apps              Pods, Deployments, ReplicaSets, StatefulSets, DaemonSets
batch             Jobs
jobset            JobSets
leaderworkerset   LeaderWorkerSets
ray               RayClusters, RayJobs, RayServices
kubeflow          training jobs, MPIJobs, TrainJobs
spark             SparkApplications

Each of these modules names its facts: type, field and version of the API's source. The table below
has one row per kind. An object of a kind without a row tells nothing of its pods, and no count of
pods ends it.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from mcad.api.live import (
    apps,
    batch,
    jobset,
    kubeflow,
    leaderworkerset,
    ray,
    spark,
)
from mcad.api.live.reading import LiveObject, Reading, brief, live_object
from mcad.api.live.switches import Switch, annotated, suspend_at, told, zero_at
from mcad.api.wire import Map, as_list, as_map
from mcad.core.state.model import ItemState, Wanted
from mcad.core.state.units import Instant


class Row(Struct, frozen=True):
    """How objects of a kind are read. ``switches`` suspend the whole object, and ``ends`` is
    whether it tells that it is finished."""

    read: Callable[[LiveObject], Reading]
    switches: tuple[Switch, ...] = ()
    ends: bool = False


_SUSPEND = (suspend_at("spec.suspend"),)
_PAUSED = Switch(("spec", "paused"), unless=apps.is_rolled_out)
_CLUSTER = suspend_at("spec.rayClusterSpec.suspend")
_STOPPED = annotated("kubeflow-resource-stopped")  # STOP_ANNOTATION of notebook-controller 1.7
_STOP = annotated("serving.kserve.io/stop", true=True)  # StopAnnotationKey of KServe 0.16
_TRAINING = Row(kubeflow.read_training_job, (suspend_at("spec.runPolicy.suspend"),), ends=True)

_TABLE: Mapping[tuple[str, str], Row] = {
    ("", "Pod"): Row(apps.read_pod, ends=True),
    ("", "ReplicationController"): Row(apps.read_scaled),
    ("apps", "Deployment"): Row(apps.read_scaled, (_PAUSED,)),
    ("apps", "ReplicaSet"): Row(apps.read_scaled),
    ("apps", "StatefulSet"): Row(apps.read_stateful_set),
    ("apps", "DaemonSet"): Row(apps.read_declared),
    ("batch", "Job"): Row(batch.read_job, (*_SUSPEND, zero_at("spec.parallelism")), ends=True),
    ("batch", "CronJob"): Row(apps.read_declared, _SUSPEND),
    ("jobset.x-k8s.io", "JobSet"): Row(jobset.read_jobset, _SUSPEND, ends=True),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Row(leaderworkerset.read_leader_worker_set),
    ("kubeflow.org", "PyTorchJob"): _TRAINING,
    ("kubeflow.org", "TFJob"): _TRAINING,
    ("kubeflow.org", "XGBoostJob"): _TRAINING,
    ("kubeflow.org", "PaddleJob"): _TRAINING,
    ("kubeflow.org", "JAXJob"): _TRAINING,
    ("kubeflow.org", "MPIJob"): Row(kubeflow.read_mpi_job, _TRAINING.switches, ends=True),
    ("kubeflow.org", "Notebook"): Row(apps.read_declared, (_STOPPED,)),
    ("trainer.kubeflow.org", "TrainJob"): Row(kubeflow.read_train_job, _SUSPEND, ends=True),
    ("ray.io", "RayCluster"): Row(ray.read_cluster, _SUSPEND),
    ("ray.io", "RayJob"): Row(ray.read_job, (*_SUSPEND, _CLUSTER), ends=True),
    ("ray.io", "RayService"): Row(ray.read_service, (suspend_at("spec.rayClusterConfig.suspend"),)),
    ("sparkoperator.k8s.io", "SparkApplication"): Row(spark.read_application, _SUSPEND, ends=True),
    ("serving.kserve.io", "InferenceService"): Row(apps.read_declared, (_STOP,)),
}

_ENDED = (ItemState.SUCCEEDED, ItemState.FAILED)
_SUCCEEDED = frozenset({"complete", "completed", "succeeded"})


class Told(Struct, frozen=True):
    """What a live object says: see ``Child``, whose fields these are, but for ``wants``: the pods
    by the path of their set."""

    wants: Mapping[str, Wanted]
    state: ItemState
    suspended: str = ""
    words: str = ""
    ended: Instant = 0
    met: frozenset[str] = frozenset()


def read(obj: Map, group: str, kind: str) -> Told:
    """Read an object as stored. Its kind is given, because objects in a list do not have it."""
    row = _TABLE.get((group, kind))
    met = _true_conditions(obj)
    if row is None:
        is_done = not met.isdisjoint(_SUCCEEDED)
        return Told({}, ItemState.SUCCEEDED if is_done else ItemState.UNKNOWN, met=met)
    live = live_object(obj, group, kind)
    said = row.read(live)
    met |= {state.lower() for state in said.states if state}
    if said.state in _ENDED:
        return Told(said.wants, said.state, words=said.words, ended=said.ended, met=met)
    if said.state is ItemState.RETRYING:
        met -= {"failed"}  # it begins again, so that is no end
    on = [told(obj, one.keys, one.says) for one in row.switches if one.holds(obj)]
    if on:
        return Told(live.none(), ItemState.SUSPENDED, on[0], met=met)
    parts = brief(", ".join(told(obj, keys) for keys in said.suspended))
    return Told(said.wants, said.state, parts, said.words, met=met)


def _true_conditions(obj: Map) -> frozenset[str]:
    """The types of its conditions with status True, in lower case."""
    return frozenset(
        one["type"].lower()
        for one in as_list(as_map(obj.get("status")).get("conditions"))
        if isinstance(one, dict)
        and one.get("status") == "True"
        and isinstance(one.get("type"), str)
    )


def tells_end(group: str, kind: str) -> bool:
    """Whether objects of this kind report when they are finished."""
    row = _TABLE.get((group, kind))
    return row is not None and row.ends


def suspended_by(manifest: Map, group: str, kind: str) -> Switch | None:
    """The field by which a manifest is submitted suspended, None if it is not."""
    row = _TABLE.get((group, kind))
    switches = row.switches if row is not None else ()
    return next((one for one in switches if one.holds(manifest)), None)
