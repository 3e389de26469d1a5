"""The table of kinds: where their pod templates are, and how many pods each of them has.

One row per kind. The pod templates of other kinds are found by walking the object (podsets.py).
"""

from collections.abc import Callable

from msgspec import Struct

from mcad.api import operators
from mcad.api.located_fields import Part
from mcad.api.wire import Json, Map, as_list, as_map

KUBEFLOW_ORDER = ("Master", "Launcher", "Chief", "PS", "Worker", "Evaluator")


def one(_: Part) -> int:
    """A single pod."""
    return 1


def none(_: Part) -> int:
    """No pod: the pods of a schedule come later."""
    return 0


def replicas(part: Part) -> int:
    """``replicas``, 1 if not given."""
    return part.count("replicas", 1)


def job_pods(job: Part) -> int:
    """Pods of a Job that run at the same time: at most its completions."""
    parallelism = job.count("parallelism", 1)
    return min(parallelism, job.count("completions", parallelism))


def jobset_pods(replicated: Part) -> int:
    """Pods of a replicated job."""
    return replicas(replicated) * job_pods(replicated.deep("template.spec"))


def group_leaders(spec: Part) -> int:
    """One leader per group of a LeaderWorkerSet."""
    return replicas(spec)


def group_workers(spec: Part) -> int:
    """The other pods of the groups; all pods if leaders have no template of their own."""
    inner = spec.at("leaderWorkerTemplate")
    size = inner.count("size", 1)
    return replicas(spec) * (max(size - 1, 0) if "leaderTemplate" in inner.value else size)


def job_left(job: Part, status: Map) -> int:
    """Pods that a running Job still wants: at most those that are left to complete."""
    parallelism = job.count("parallelism", 1)
    completions = job.count("completions", parallelism)
    return max(0, min(parallelism, completions - Part(status, "", []).count("succeeded", 0)))


def jobset_left(replicated: Part, status: Map) -> int:
    """Pods of the jobs that have not succeeded yet."""
    name = replicated.value.get("name")
    for report in as_list(status.get("replicatedJobsStatus")):
        if as_map(report).get("name") == name:
            left = replicas(replicated) - Part(as_map(report), "", []).count("succeeded", 0)
            return max(0, left) * job_pods(replicated.deep("template.spec"))
    return jobset_pods(replicated)


def replica_left(replica: Part, status: Map) -> int:
    """Pods of a training job's role that have not succeeded yet."""
    reports = as_map(status.get("replicaStatuses"))
    report = Part(as_map(reports.get(replica.name)), "", [])
    return max(0, replicas(replica) - report.count("succeeded", 0))


def own_template(part: Part, _: Part) -> Map | None:
    """The element itself: a Pod."""
    return part.value


class Family(Struct, frozen=True):
    """Pod sets of one place in a kind.

    ``element`` is the map, list or map of maps that they come from (see Part.elements), and
    ``template`` the path of the pod template in each element. ``pods`` counts them. ``left`` counts
    them on a live object if that differs. ``build`` makes the template from (element, ``owner``)
    where the operator adds to it or where there is none in the manifest; ``labels`` is then where
    the labels of its pods go. ``implied`` pods come from the operator alone, which
    would make them as ``build`` does.
    """

    element: str
    template: str = "template"
    pods: Callable[[Part], int] = replicas
    left: Callable[[Part, Map], int] | None = None
    build: Callable[[Part, Part], Map | None] | None = None
    owner: str = "spec"
    labels: str = ""
    per_node: bool = False
    implied: bool = False


class Kind(Struct, frozen=True):
    """One row. ``final`` are the condition types of an object that wants no more pods, ``states``
    the status fields with a state beside its conditions; ``guessed`` marks rows that do not find
    all pods."""

    families: tuple[Family, ...] = ()
    final: frozenset[str] = frozenset()
    states: tuple[str, ...] = ()
    guessed: bool = False


def _training(
    roles: str, build: Callable[[Part, Part], Map | None] | None = None, owner: str = "spec"
) -> Kind:
    family = Family(f"spec.{roles}{{}}", left=replica_left, build=build, owner=owner)
    return Kind((family,), final=frozenset({"succeeded", "failed"}))


def _ray(cluster: str) -> tuple[Family, ...]:
    head, workers = f"{cluster}.headGroupSpec", f"{cluster}.workerGroupSpecs[]"
    return (
        Family(head, pods=one, build=operators.ray_head, owner=cluster),
        Family(workers, pods=operators.ray_workers, build=operators.ray_worker, owner=cluster),
    )


def _serving(component: str) -> Family:
    def least(part: Part) -> int:
        return part.count("minReplicas", 1)

    return Family(f"spec.{component}", "", pods=least, build=operators.serving)


_SCALED = Kind((Family("spec"),))
_JOB = Family("spec", pods=job_pods, left=job_left)
_SUBMITTER = Family(
    "spec", "submitterPodTemplate", pods=one, build=operators.ray_submitter, implied=True
)
_DONE = frozenset({"complete", "completed", "succeeded", "failed"})

KINDS: dict[tuple[str, str], Kind] = {
    ("", "Pod"): Kind((Family("", "", pods=one, build=own_template),), _DONE, ("phase",)),
    ("", "ReplicationController"): _SCALED,
    ("", "PodTemplate"): Kind(),
    ("apps", "Deployment"): _SCALED,
    ("apps", "ReplicaSet"): _SCALED,
    ("apps", "StatefulSet"): _SCALED,
    ("apps", "DaemonSet"): Kind((Family("spec", pods=one, per_node=True),)),
    ("batch", "Job"): Kind((_JOB,), _DONE),
    ("batch", "CronJob"): Kind((Family("spec.jobTemplate.spec", pods=none),)),
    ("jobset.x-k8s.io", "JobSet"): Kind(
        (Family("spec.replicatedJobs[]", "template.spec.template", jobset_pods, jobset_left),),
        _DONE,
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Kind(
        (
            Family("spec", "leaderWorkerTemplate.leaderTemplate", group_leaders),
            Family("spec", "leaderWorkerTemplate.workerTemplate", group_workers),
        )
    ),
    ("kubeflow.org", "PyTorchJob"): _training("pytorchReplicaSpecs", operators.pytorch),
    ("kubeflow.org", "TFJob"): _training("tfReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _training("mpiReplicaSpecs", operators.mpi, ""),
    ("kubeflow.org", "XGBoostJob"): _training("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _training("paddleReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _training("jaxReplicaSpecs"),
    ("kubeflow.org", "Notebook"): Kind((Family("spec", pods=one),)),
    ("trainer.kubeflow.org", "TrainJob"): Kind(
        (
            Family(
                "spec.trainer",
                "",
                pods=lambda part: part.count("numNodes", 1),
                build=operators.train_node,
            ),
        ),
        _DONE,
        guessed=True,
    ),
    ("ray.io", "RayCluster"): Kind(_ray("spec")),
    ("ray.io", "RayJob"): Kind(
        (*_ray("spec.rayClusterSpec"), _SUBMITTER), _DONE, ("jobStatus", "jobDeploymentStatus")
    ),
    ("ray.io", "RayService"): Kind(_ray("spec.rayClusterConfig")),
    ("sparkoperator.k8s.io", "SparkApplication"): Kind(
        (
            Family("spec.driver", "", one, build=operators.spark_pod, labels="labels"),
            Family(
                "spec.executor",
                "",
                operators.spark_executors,
                build=operators.spark_pod,
                labels="labels",
            ),
        ),
        _DONE,
        ("applicationState.state",),
    ),
    ("serving.kserve.io", "InferenceService"): Kind(
        tuple(_serving(name) for name in ("predictor", "transformer", "explainer")), guessed=True
    ),
}


def tells_end(group: str, kind: str) -> bool:
    """Whether objects of this kind report when they are finished."""
    row = KINDS.get((group, kind))
    return row is not None and bool(row.final)


def kubeflow_rank(part: Part) -> tuple[int, str]:
    """Sort key: masters before workers, in the order of creation and of v1beta2."""
    name = part.name
    rank = KUBEFLOW_ORDER.index(name) if name in KUBEFLOW_ORDER else len(KUBEFLOW_ORDER)
    return rank, name


def states_of(kind: Kind, status: Map) -> frozenset[str]:
    """The condition types with status True and the states of an object, in lower case."""
    met = {
        value["type"].lower()
        for value in as_list(status.get("conditions"))
        if isinstance(value, dict)
        and value.get("status") == "True"
        and isinstance(value.get("type"), str)
    }
    for path in kind.states:
        head, _, last = path.rpartition(".")
        state: Json = Part(status, "", []).deep(head).value.get(last)
        if isinstance(state, str) and state:
            met.add(state.lower())
    return frozenset(met)
