"""The table of kinds: where their pod templates are, and how many pods each of them has.

One row per kind. The pod templates of other kinds are found by walking the object (podsets.py).
"""

from collections.abc import Callable

from msgspec import Struct

from mcad.api import operators, spark
from mcad.api.located_fields import Part
from mcad.api.wire import Map

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
    return min(parallelism, job.most("completions", parallelism))


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


def own_template(part: Part, _: Part) -> Map | None:
    """The element itself: a Pod."""
    return part.value


class Family(Struct, frozen=True):
    """Pod sets of one place in a kind.

    ``element`` is the map, list or map of maps that they come from (see Part.elements), and
    ``template`` the path of the pod template in each element. ``pods`` counts them. ``build`` makes
    the template from (element, ``owner``) where the operator adds to it or where there is none in
    the manifest; ``labels`` is then where the labels of its pods go. ``implied`` pods come from the
    operator alone, which would make them as ``build`` does.
    """

    element: str
    template: str = "template"
    pods: Callable[[Part], int] = replicas
    build: Callable[[Part, Part], Map | None] | None = None
    owner: str = "spec"
    labels: str = ""
    per_node: bool = False
    implied: bool = False


class Kind(Struct, frozen=True):
    """One row; ``guessed`` marks rows that do not find all pods."""

    families: tuple[Family, ...] = ()
    guessed: bool = False


def _training(
    roles: str, build: Callable[[Part, Part], Map | None] | None = None, owner: str = "spec"
) -> Kind:
    return Kind((Family(f"spec.{roles}{{}}", build=build, owner=owner),))


def _ray(
    cluster: str,
    build_head: Callable[[Part, Part], Map | None] = operators.ray_head,
    owner: str = "",
) -> tuple[Family, ...]:
    head, workers = f"{cluster}.headGroupSpec", f"{cluster}.workerGroupSpecs[]"
    return (
        Family(head, pods=one, build=build_head, owner=owner or cluster),
        Family(workers, pods=operators.ray_workers, build=operators.ray_worker, owner=cluster),
    )


def _serving(component: str) -> Family:
    def least(part: Part) -> int:
        return part.count("minReplicas", 1)

    return Family(f"spec.{component}", "", pods=least, build=operators.serving)


_SCALED = Kind((Family("spec"),))
_SUBMITTER = Family(
    "spec", "submitterPodTemplate", pods=one, build=operators.ray_submitter, implied=True
)

KINDS: dict[tuple[str, str], Kind] = {
    ("", "Pod"): Kind((Family("", "", pods=one, build=own_template),)),
    ("", "ReplicationController"): _SCALED,
    ("", "PodTemplate"): Kind(),
    ("apps", "Deployment"): _SCALED,
    ("apps", "ReplicaSet"): _SCALED,
    ("apps", "StatefulSet"): _SCALED,
    ("apps", "DaemonSet"): Kind((Family("spec", pods=one, per_node=True),)),
    ("batch", "Job"): Kind((Family("spec", pods=job_pods),)),
    ("batch", "CronJob"): Kind((Family("spec.jobTemplate.spec", pods=none),)),
    ("jobset.x-k8s.io", "JobSet"): Kind(
        (Family("spec.replicatedJobs[]", "template.spec.template", jobset_pods),)
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
        guessed=True,
    ),
    ("ray.io", "RayCluster"): Kind(_ray("spec")),
    ("ray.io", "RayJob"): Kind(
        (*_ray("spec.rayClusterSpec", operators.ray_job_head, "spec"), _SUBMITTER)
    ),
    ("ray.io", "RayService"): Kind(_ray("spec.rayClusterConfig")),
    ("sparkoperator.k8s.io", "SparkApplication"): Kind(
        (
            Family("spec", "driver", one, build=spark.driver_pod, labels="labels"),
            Family(
                "spec",
                "executor",
                spark.executors,
                build=spark.executor_pod,
                labels="labels",
            ),
        )
    ),
    ("serving.kserve.io", "InferenceService"): Kind(
        tuple(_serving(name) for name in ("predictor", "transformer", "explainer")), guessed=True
    ),
}


def kubeflow_rank(part: Part) -> tuple[int, str]:
    """Sort key: masters before workers, in the order of creation and of v1beta2."""
    name = part.name
    rank = KUBEFLOW_ORDER.index(name) if name in KUBEFLOW_ORDER else len(KUBEFLOW_ORDER)
    return rank, name
