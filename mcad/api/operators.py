"""Pods that operators make of their custom resources, beyond the templates in the manifest.

The figures are those of the operators' sources: KubeRay 1.4 and 1.5 (common/pod.go, common/job.go,
rayjob_controller.go), the Kubeflow training operator 1.8 (config.go, mpi/mpijob.go). Those of Spark
are in spark.py.
"""

from mcad.api.located_fields import MAX_COUNT, Part
from mcad.api.wire import Json, Map, as_list, as_map, as_text, dig

AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
WAIT_FOR_HEAD = {"cpu": "200m", "memory": "256Mi"}
SUBMITTER = {
    "limits": {"cpu": "1", "memory": "1Gi"},
    "requests": {"cpu": "500m", "memory": "200Mi"},
}
K8S_JOB_MODE, SIDECAR_MODE = "K8sJobMode", "SidecarMode"
PYTORCH_INIT = {"cpu": "50m", "memory": "10Mi"}
MPI_DELIVERY = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}


def container(requests: Map) -> Map:
    """A container with these requests and nothing else."""
    return {"resources": {"requests": requests}}


def with_containers(template: Map, containers: list[Json], inits: list[Json]) -> Map:
    """The template with more containers at the end, as an operator adds them."""
    spec = as_map(template.get("spec"))
    return template | {
        "spec": spec
        | {
            "containers": as_list(spec.get("containers")) + containers,
            "initContainers": as_list(spec.get("initContainers")) + inits,
        }
    }


def ray_head(group: Part, cluster: Part) -> Map | None:
    """The head pod; with in-tree autoscaling it has a second container."""
    template = as_map(group.value.get("template"))
    if not template or cluster.value.get("enableInTreeAutoscaling") is not True:
        return template or None
    chosen = dig(cluster.value, "autoscalerOptions", "resources")
    autoscaler = {"resources": chosen} if isinstance(chosen, dict) else container(AUTOSCALER)
    return with_containers(template, [autoscaler], [])


def ray_job_head(group: Part, job: Part) -> Map | None:
    """The head pod of a RayJob. In SidecarMode (KubeRay 1.5) the submitter is one more container of
    it, always KubeRay's own: ``submitterPodTemplate`` does not count."""
    head = ray_head(group, job.at("rayClusterSpec"))
    if head is None or submission_mode(job.value) != SIDECAR_MODE:
        return head
    return with_containers(head, [{"resources": SUBMITTER}], [])


def submission_mode(spec: Map) -> str:
    """``RayJobSpec.submissionMode``, KubeRay's default if it is absent."""
    return as_text(spec.get("submissionMode")) or K8S_JOB_MODE


def ray_worker(group: Part, _: Part) -> Map | None:
    """A worker pod; its init container waits for the head."""
    template = as_map(group.value.get("template"))
    return with_containers(template, [], [container(WAIT_FOR_HEAD)]) if template else None


def ray_workers(group: Part) -> int:
    """Desired pods of a worker group: replicas within its bounds, times hosts per replica; none as
    long as it is suspended."""
    if group.value.get("suspend") is True:
        return 0
    least, most = group.count("minReplicas", 0), group.most("maxReplicas", MAX_COUNT)
    wanted = max(group.count("replicas", 0), least)
    return min(wanted, most) * group.count("numOfHosts", 1)


def ray_submitter(spec: Part, _: Part) -> Map | None:
    """The pod that submits the job to the cluster, unless the operator submits it itself."""
    if submission_mode(spec.value) != K8S_JOB_MODE:
        return None
    given = as_map(spec.value.get("submitterPodTemplate"))
    return given or _submitter(dig(spec.value, "rayClusterSpec", "headGroupSpec", "template"))


def _submitter(head: Json) -> Map:
    """KubeRay's default submitter pod, with the image of the head if that is known."""
    image = {"image": image_of(head)} if image_of(head) else {}
    made = {"name": "ray-job-submitter", "resources": SUBMITTER, **image}
    return {"spec": {"restartPolicy": "Never", "containers": [made]}}


def image_of(template: Json) -> str:
    """The image of a pod template's first container, "" if it names none."""
    containers = as_list(dig(template, "spec", "containers"))
    return as_text(as_map(containers[0]).get("image")) if containers else ""


def pytorch(replica: Part, job: Part) -> Map | None:
    """A pod of a PyTorchJob; workers wait for their master in an init container."""
    template = as_map(replica.value.get("template"))
    waits = replica.name == "Worker" and "Master" in as_map(job.value.get("pytorchReplicaSpecs"))
    return with_containers(template, [], [container(PYTORCH_INIT)]) if waits else template or None


def mpi(replica: Part, job: Part) -> Map | None:
    """A pod of an MPIJob; the launcher of v1 fetches kubectl in an init container."""
    template = as_map(replica.value.get("template"))
    fetches = replica.name == "Launcher" and job.value.get("apiVersion") == "kubeflow.org/v1"
    return with_containers(template, [], [container(MPI_DELIVERY)]) if fetches else template or None


def serving(component: Part, _: Part) -> Map | None:
    """A pod of an InferenceService: a component is a pod spec with the model server as a map."""
    value = component.value
    if not value:
        return None
    servers = [one for one in value.values() if isinstance(one, dict) and "resources" in one]
    return {"spec": value | {"containers": as_list(value.get("containers")) + servers}}


def train_node(trainer: Part, _: Part) -> Map | None:
    """A pod of a TrainJob, as far as the job describes it; the rest is in its runtime."""
    return {"spec": {"containers": [{"resources": trainer.value.get("resourcesPerNode")}]}}
