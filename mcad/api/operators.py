"""Pods that operators make of their custom resources, beyond the templates in the manifest.

The figures are those of the operators' sources: KubeRay 1.4 (common/pod.go, common/job.go), the
Kubeflow training operator 1.8 (config.go, mpi/mpijob.go), Spark 3 on Kubernetes.
"""

import re

from mcad.api.located_fields import Part
from mcad.api.wire import Json, Map, as_list, as_map, as_text, dig

AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
WAIT_FOR_HEAD = {"cpu": "200m", "memory": "256Mi"}
SUBMITTER = {
    "limits": {"cpu": "1", "memory": "1Gi"},
    "requests": {"cpu": "500m", "memory": "200Mi"},
}
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


def ray_worker(group: Part, _: Part) -> Map | None:
    """A worker pod; its init container waits for the head."""
    template = as_map(group.value.get("template"))
    return with_containers(template, [], [container(WAIT_FOR_HEAD)]) if template else None


def ray_workers(group: Part) -> int:
    """Desired pods of a worker group: replicas within its bounds, times hosts per replica; none as
    long as it is suspended."""
    if group.value.get("suspend") is True:
        return 0
    least, most = group.count("minReplicas", 0), group.count("maxReplicas", 2**31 - 1)
    wanted = max(group.count("replicas", 0), least)
    return min(wanted, most) * group.count("numOfHosts", 1)


def ray_submitter(spec: Part, _: Part) -> Map | None:
    """The pod that submits the job to the cluster, unless the operator submits it itself."""
    if as_text(spec.value.get("submissionMode")) not in ("", "K8sJobMode"):
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


_SPARK_MEMORY = re.compile(r"(\d{1,12})([kmgtp]?)i?b?", re.ASCII | re.IGNORECASE)
_SPARK_UNIT = {"k": 1, "": 2**10, "m": 2**10, "g": 2**20, "t": 2**30, "p": 2**40}  # in KiB
_SPARK_OVERHEAD_LEAST = 384


def spark_pod(role: Part, application: Part) -> Map | None:
    """A Spark driver or executor: cores, and heap plus overhead (less for JVM languages)."""
    value = role.value
    heap = _spark_mib(value.get("memory"), default=1024)
    factor = _spark_factor(application.value)
    overhead = max(_SPARK_OVERHEAD_LEAST, int(heap * factor))
    requests: Map = {
        "cpu": value.get("coreRequest") or value.get("cores") or 1,
        "memory": f"{heap + _spark_mib(value.get('memoryOverhead'), default=overhead)}Mi",
    }
    gpu = as_map(value.get("gpu"))
    if as_text(gpu.get("name")):
        requests[gpu["name"]] = gpu.get("quantity")
    template = {"metadata": {"labels": value.get("labels")}, "spec": {**value, "containers": []}}
    added = [container(requests), *as_list(value.get("sidecars"))]
    return with_containers(template, added, [])


def spark_executors(executor: Part) -> int:
    """The number of executors that the driver requests at its start."""
    return executor.count("instances", 1)


def _spark_factor(application: Map) -> float:
    given = as_text(application.get("memoryOverheadFactor"))
    if re.fullmatch(r"\d{1,3}(\.\d{1,9})?", given, re.ASCII):
        return float(given)
    return 0.4 if application.get("type") in ("Python", "R") else 0.1


def _spark_mib(value: Json, *, default: int) -> int:
    """MiB of memory in Spark's notation: ``512m``, ``1g``; a bare number is MiB."""
    match = _SPARK_MEMORY.fullmatch(as_text(value))
    if match is None:
        return default
    kib = int(match[1]) * _SPARK_UNIT[match[2].lower()]
    return -(-kib // 1024)
