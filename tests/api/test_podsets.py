"""The demand of every kind in the table, with figures from the documents of each operator."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.api.podsets import infer
from mcad.core.state.model import PodSet
from tests.api.builders import (
    Gi,
    Map,
    Mi,
    accepted,
    config_map,
    container,
    deployment,
    generic,
    job,
    obj,
    pod,
    pod_spec,
    read,
    template,
    v1beta1,
    v1beta2,
)

Line = tuple[str, int, dict[str, int]]


def sets_of(thing: Map, **item: Any) -> tuple[PodSet, ...]:
    return accepted(v1beta1(generic(thing, **item))).workload.sets


def lines(thing: Map, **item: Any) -> list[Line]:
    """(path, pods, request without the slot) of each set."""
    return [
        (one.path, one.replicas, {name: n for name, n in one.request if name != "pods"})
        for one in sets_of(thing, **item)
    ]


CPU = {"cpu": 1000}
T = "template.spec.template"


def group(replicas: Any = 1, cpu: str = "1", **more: Any) -> Map:
    return {"replicas": replicas, "template": template(container(cpu)), **more}


def ray_spec(*workers: Map, **more: Any) -> Map:
    return {
        "headGroupSpec": {"template": template(container("2", "4Gi"))},
        "workerGroupSpecs": list(workers),
    } | more


def training(roles: str, **replicas: Map) -> Map:
    return {roles: replicas}


def kind(name: str, **spec: Any) -> Map:
    """An object of a kind that has its own API group here."""
    return obj(GROUPS[name], name, spec=spec)


def kubeflow(name: str, role: str, /, **replicas: Map) -> Map:
    return kind(name, **training(f"{role}ReplicaSpecs", **replicas))


GROUPS = {
    **dict.fromkeys(("StatefulSet", "ReplicaSet", "DaemonSet"), "apps/v1"),
    "ReplicationController": "v1",
    "CronJob": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    **dict.fromkeys(("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob"), "kubeflow.org/v1"),
    **dict.fromkeys(("PaddleJob", "JAXJob", "Notebook"), "kubeflow.org/v1"),
    **dict.fromkeys(("RayCluster", "RayJob", "RayService"), "ray.io/v1"),
    "SparkApplication": "sparkoperator.k8s.io/v1beta2",
    "InferenceService": "serving.kserve.io/v1beta1",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "Widget": "example.com/v1",
}


def jobset(*jobs: tuple[str, int, Map]) -> Map:
    return {
        "replicatedJobs": [
            {"name": name, "replicas": n, "template": {"spec": {"template": template()} | spec}}
            for name, n, spec in jobs
        ]
    }


def lws(replicas: int, size: int, **inner: Any) -> Map:
    worker = {"size": size, "workerTemplate": template(container("1"))}
    return {"replicas": replicas, "leaderWorkerTemplate": worker | inner}


def at(path: str, pods: int, /, **request: Any) -> Line:
    """A pod set at a path of the spec; what it requests, 1 CPU if nothing is said."""
    amounts = {name.replace("_", "-"): value for name, value in request.items()}
    return (f"template.spec.{path}", pods, amounts or CPU)


def role(job: str, name: str, pods: int, /, **request: Any) -> Line:
    """The pods of a role of a training job."""
    return at(f"{job}ReplicaSpecs.{name}.template", pods, **request)


def ray_lines(prefix: str = "", workers: int = 1) -> list[Line]:
    """A head of 2 CPU, 4 Gi and workers of 1 CPU with an init container of 256 Mi."""
    return [
        at(f"{prefix}headGroupSpec.template", 1, cpu=2000, memory=4 * Gi),
        at(f"{prefix}workerGroupSpecs[0].template", workers, cpu=1000, memory=256 * Mi),
    ]


def ray_job(workers: int, **spec: Any) -> Map:
    return kind("RayJob", rayClusterSpec=ray_spec(group(workers)), **spec)


SUBMITTER = at("submitterPodTemplate", 1, cpu=500, memory=200 * Mi)
AUTOSCALED: Any = {"enableInTreeAutoscaling": True}
SIZED: Any = {"autoscalerOptions": {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}}
GPU = "nvidia.com/gpu"
LEADER = "leaderWorkerTemplate"


def spark(**spec: Any) -> Map:
    """An application of one driver and one executor of 1 GiB, unless the spec says otherwise."""
    return kind("SparkApplication", **({"type": "Scala", "driver": {}, "executor": {}} | spec))


def spark_lines(executors: int = 1, driver_mib: int = 1408, executor_mib: int = 1408) -> list[Line]:
    """A driver and executors of 1 CPU."""
    return [
        at("driver", 1, cpu=1000, memory=driver_mib * Mi),
        at("executor", executors, cpu=1000, memory=executor_mib * Mi),
    ]


def dynamic(**more: Any) -> Map:
    return {"enabled": True} | more


def conf(**more: str) -> Map:
    """Properties of Spark, with __ for a dot."""
    return {f"spark.{key.replace('__', '.')}": value for key, value in more.items()}


BIG: Any = {"memory": "10g"}
SPARK: dict[str, tuple[Map, list[Line]]] = {
    "dynamic Spark executors: initialExecutors": (
        spark(dynamicAllocation=dynamic(initialExecutors=4, minExecutors=2, maxExecutors=10)),
        spark_lines(4),
    ),
    "dynamic Spark executors: minExecutors, if that is more": (
        spark(dynamicAllocation=dynamic(initialExecutors=1, minExecutors=3)),
        spark_lines(3),
    ),
    "dynamic Spark executors: instances, if those are most": (
        spark(dynamicAllocation=dynamic(minExecutors=3), executor={"instances": 5}),
        spark_lines(5),
    ),
    "dynamic Spark executors: at first none": (spark(dynamicAllocation=dynamic()), spark_lines(0)),
    "dynamic Spark executors, by Spark's own names": (
        spark(
            sparkConf=conf(
                dynamicAllocation__enabled="true",
                dynamicAllocation__initialExecutors="4",
                dynamicAllocation__minExecutors="2",
            )
        ),
        spark_lines(4),
    ),
    "dynamic Spark executors: a field overrides Spark's name": (
        spark(
            dynamicAllocation=dynamic(minExecutors=2),
            sparkConf=conf(dynamicAllocation__minExecutors="7"),
        ),
        spark_lines(2),
    ),
    "Spark executors that are not dynamic after all": (
        spark(dynamicAllocation={"enabled": False, "initialExecutors": 4}),
        spark_lines(1),
    ),
    "Spark executors by Spark's own name": (
        spark(sparkConf=conf(executor__instances="3")),
        spark_lines(3),
    ),
    "PySpark: its memory is beside heap and overhead": (
        spark(type="Python", executor=BIG, sparkConf=conf(executor__pyspark__memory="2g")),
        spark_lines(1, 1024 + 409, 10240 + 4096 + 2048),
    ),
    "PySpark's memory in an application that is not Python": (
        spark(type="R", executor=BIG, sparkConf=conf(executor__pyspark__memory="2g")),
        spark_lines(1, 1024 + 409, 10240 + 4096),
    ),
    "Spark's off-heap memory, in bytes": (
        spark(
            sparkConf=conf(memory__offHeap__enabled="true", memory__offHeap__size=str(512 * 2**20))
        ),
        spark_lines(1, 1408, 1408 + 512),
    ),
    "Spark's off-heap memory that is not enabled": (
        spark(sparkConf=conf(memory__offHeap__size="4g")),
        spark_lines(),
    ),
    "Spark's overhead factor: that of the application": (
        spark(memoryOverheadFactor="0.5", driver=BIG, executor=BIG),
        spark_lines(1, 15360, 15360),
    ),
    "Spark's overhead factor: by Spark's own name": (
        spark(
            memoryOverheadFactor="0.5",
            driver=BIG,
            executor=BIG,
            sparkConf=conf(kubernetes__memoryOverheadFactor="0.2"),
        ),
        spark_lines(1, 12288, 12288),
    ),
    "Spark's overhead factor: one for each role": (
        spark(
            driver=BIG,
            executor=BIG,
            sparkConf=conf(
                driver__memoryOverheadFactor="0.3", executor__memoryOverheadFactor="0.6"
            ),
        ),
        spark_lines(1, 13312, 16384),
    ),
    "Spark's least overhead": (
        spark(sparkConf=conf(driver__minMemoryOverhead="1g", executor__minMemoryOverhead="512m")),
        spark_lines(1, 2048, 1536),
    ),
    "Spark's memory by its own names": (
        spark(
            sparkConf=conf(
                driver__memory="2g",
                driver__memoryOverhead="1g",
                executor__memory="3g",
                executor__memoryOverhead="100",
            )
        ),
        spark_lines(1, 3072, 3172),
    ),
    "Spark's memory: a field overrides its own name": (
        spark(executor={"memory": "2g"}, sparkConf=conf(executor__memory="9g")),
        spark_lines(1, 1408, 2048 + 384),
    ),
    "Spark's cores and devices by its own names": (
        spark(
            sparkConf=conf(
                driver__cores="3",
                executor__cores="4",
                kubernetes__executor__request__cores="2500m",
                executor__resource__gpu__amount="2",
                executor__resource__gpu__vendor="nvidia.com",
            )
        ),
        [
            at("driver", 1, cpu=3000, memory=1408 * Mi),
            at("executor", 1, cpu=2500, memory=1408 * Mi, **{GPU: 2}),
        ],
    ),
    "a Spark driver of a template: Spark's container is that of its name": (
        spark(
            driver={
                "cores": 2,
                "template": template(
                    container("3"),
                    container("9", "9Gi", name="spark-kubernetes-driver"),
                ),
            },
        ),
        [at("driver", 1, cpu=5000, memory=1408 * Mi), spark_lines()[1]],
    ),
}


KINDS: dict[str, tuple[Map, list[Line]]] = {
    "a pod is one": (pod(), [("template", 1, CPU)]),
    "a deployment": (deployment(replicas=3), [at("template", 3)]),
    "a deployment without replicas is one": (deployment(replicas=None), [at("template", 1)]),
    "a deployment that is scaled to zero": (deployment(replicas=0), [at("template", 0)]),
    "a stateful set": (kind("StatefulSet", replicas=4, template=template()), [at("template", 4)]),
    "a replica set": (kind("ReplicaSet", replicas=2, template=template()), [at("template", 2)]),
    "a replication controller": (
        kind("ReplicationController", replicas=2, template=template()),
        [at("template", 2)],
    ),
    "a job is one": (job(), [at("template", 1)]),
    "a job runs what it has to complete": (job(parallelism=8, completions=3), [at("template", 3)]),
    "a job runs as many as it may": (job(parallelism=2, completions=9), [at("template", 2)]),
    "a job without completions": (job(parallelism=5), [at("template", 5)]),
    "a job with completions only runs one at a time": (job(completions=5), [at("template", 1)]),
    "a cron job demands nothing now": (
        kind("CronJob", jobTemplate={"spec": {"template": template()}}),
        [at("jobTemplate.spec.template", 0)],
    ),
    "a config map needs no pods": (config_map(), []),
    "a template that is not run": (obj("v1", "PodTemplate") | {"template": template()}, []),
    "upstream's job set: workers 2x2 and a driver": (
        kind(
            "JobSet",
            **jobset(
                ("workers", 2, {"parallelism": 2, "completions": 2}),
                ("driver", 1, {"parallelism": 1, "completions": 1}),
            ),
        ),
        [
            at("replicatedJobs[0].template.spec.template", 4),
            at("replicatedJobs[1].template.spec.template", 1),
        ],
    ),
    "leaders and workers: replicas 2, size 3": (
        kind("LeaderWorkerSet", **lws(2, 3, leaderTemplate=template(container("2")))),
        [at(f"{LEADER}.leaderTemplate", 2, cpu=2000), at(f"{LEADER}.workerTemplate", 4)],
    ),
    "leaders that are like their workers": (
        kind("LeaderWorkerSet", **lws(2, 3)),
        [at(f"{LEADER}.workerTemplate", 6)],
    ),
    "a PyTorchJob: the master first, workers wait for it": (
        kubeflow("PyTorchJob", "pytorch", Worker=group(2), Master=group(1)),
        [role("pytorch", "Master", 1), role("pytorch", "Worker", 2, cpu=1000, memory=10 * Mi)],
    ),
    "a TFJob": (
        kubeflow("TFJob", "tf", Evaluator=group(1), Worker=group(4), PS=group(2), Chief=group(1)),
        [
            role("tf", "Chief", 1),
            role("tf", "PS", 2),
            role("tf", "Worker", 4),
            role("tf", "Evaluator", 1),
        ],
    ),
    "an MPIJob of the training operator fetches kubectl": (
        kubeflow("MPIJob", "mpi", Worker=group(2), Launcher=group(1, "50m")),
        [
            role("mpi", "Launcher", 1, cpu=100, memory=512 * Mi, ephemeral_storage=5 * Gi),
            role("mpi", "Worker", 2),
        ],
    ),
    "an MPIJob of the MPI operator does not": (
        kubeflow("MPIJob", "mpi", Launcher=group(1, "50m"))
        | {"apiVersion": "kubeflow.org/v2beta1"},
        [role("mpi", "Launcher", 1, cpu=50)],
    ),
    "an XGBoostJob": (kubeflow("XGBoostJob", "xgb", Master=group(1)), [role("xgb", "Master", 1)]),
    "a PaddleJob": (
        kubeflow("PaddleJob", "paddle", Worker=group(3)),
        [role("paddle", "Worker", 3)],
    ),
    "a JAXJob": (kubeflow("JAXJob", "jax", Worker=group(3)), [role("jax", "Worker", 3)]),
    "a Ray cluster: workers have an init container": (
        kind("RayCluster", **ray_spec(group(3))),
        ray_lines(workers=3),
    ),
    "Ray workers on several hosts": (
        kind("RayCluster", **ray_spec(group(3, numOfHosts=4))),
        ray_lines(workers=12),
    ),
    "Ray workers are raised to the minimum": (
        kind("RayCluster", **ray_spec(group(None, minReplicas=2, maxReplicas=5))),
        ray_lines(workers=2),
    ),
    "Ray workers are cut to the maximum": (
        kind("RayCluster", **ray_spec(group(9, maxReplicas=5))),
        ray_lines(workers=5),
    ),
    "a small Ray worker is as large as its init container": (
        kind("RayCluster", **ray_spec(group(1, "100m"))),
        [ray_lines()[0], at("workerGroupSpecs[0].template", 1, cpu=200, memory=256 * Mi)],
    ),
    "an autoscaled Ray cluster: the autoscaler runs beside the head": (
        kind("RayCluster", **ray_spec(group(1), **AUTOSCALED)),
        [at("headGroupSpec.template", 1, cpu=2500, memory=4 * Gi + 512 * Mi), ray_lines()[1]],
    ),
    "an autoscaler of another size": (
        kind("RayCluster", **ray_spec(group(1), **AUTOSCALED, **SIZED)),
        [at("headGroupSpec.template", 1, cpu=3000, memory=5 * Gi), ray_lines()[1]],
    ),
    "a Ray job: its cluster and the pod that submits it": (
        ray_job(2),
        [*ray_lines("rayClusterSpec.", workers=2), SUBMITTER],
    ),
    "a Ray job that the operator submits by HTTP": (
        ray_job(2, submissionMode="HTTPMode"),
        ray_lines("rayClusterSpec.", workers=2),
    ),
    "a Ray job that a container of its head submits": (
        ray_job(1, submissionMode="SidecarMode"),
        [
            at("rayClusterSpec.headGroupSpec.template", 1, cpu=2500, memory=4 * Gi + 200 * Mi),
            ray_lines("rayClusterSpec.")[1],
        ],
    ),
    "that container is KubeRay's own, beside an autoscaler": (
        kind(
            "RayJob",
            submissionMode="SidecarMode",
            submitterPodTemplate=template(container("3")),
            rayClusterSpec=ray_spec(**AUTOSCALED),
        ),
        [at("rayClusterSpec.headGroupSpec.template", 1, cpu=3000, memory=4 * Gi + 712 * Mi)],
    ),
    "a Ray job that a client submits": (
        ray_job(1, submissionMode="InteractiveMode"),
        ray_lines("rayClusterSpec."),
    ),
    "a Ray job with a submitter of its own": (
        ray_job(1, submitterPodTemplate=template(container("3"))),
        [*ray_lines("rayClusterSpec."), at("submitterPodTemplate", 1, cpu=3000)],
    ),
    "a Ray job on a cluster that exists": (
        kind("RayJob", clusterSelector={"ray.io/cluster": "c"}),
        [SUBMITTER],
    ),
    "a Ray service": (
        kind("RayService", rayClusterConfig=ray_spec(group(2))),
        ray_lines("rayClusterConfig.", workers=2),
    ),
    "a Spark application: 10 % overhead, at least 384 MiB": (
        kind(
            "SparkApplication",
            type="Scala",
            driver={"cores": 1, "memory": "512m"},
            executor={"cores": 2, "instances": 3, "memory": "8g"},
        ),
        [
            at("driver", 1, cpu=1000, memory=(512 + 384) * Mi),
            at("executor", 3, cpu=2000, memory=(8192 + 819) * Mi),
        ],
    ),
    "a Spark application in Python: 40 % overhead": (
        kind(
            "SparkApplication",
            type="Python",
            driver={"coreRequest": "200m", "memoryOverhead": "1g"},
            executor={"memory": "4g", "gpu": {"name": GPU, "quantity": 2}},
        ),
        [
            at("driver", 1, cpu=200, memory=2 * Gi),
            at("executor", 1, cpu=1000, memory=(4096 + 1638) * Mi, **{GPU: 2}),
        ],
    ),
    **SPARK,
    "a notebook": (kind("Notebook", template=template()), [at("template", 1)]),
    "an inference service: containers and model server": (
        kind(
            "InferenceService",
            predictor={"minReplicas": 2, "model": {"resources": {"requests": {"cpu": "3"}}}},
            transformer=pod_spec(),
        ),
        [at("predictor", 2, cpu=3000), at("transformer", 1)],
    ),
    "a train job: nodes times resources": (
        kind("TrainJob", trainer={"numNodes": 4, "resourcesPerNode": {"limits": {GPU: 8}}}),
        [at("trainer", 4, **{GPU: 8})],
    ),
    "an unknown kind: its templates and the replicas beside them": (
        kind(
            "Widget",
            workers=[{"replicas": 3, "template": template()}, {"template": template()}],
            boss={"podTemplate": template(container("2"))},
        ),
        [
            at("boss.podTemplate", 1, cpu=2000),
            at("workers[0].template", 3),
            at("workers[1].template", 1),
        ],
    ),
    "an unknown kind whose status shows a template": (
        kind("Widget", template=template()) | {"status": {"template": template()}},
        [at("template", 1)],
    ),
    "an unknown kind that looks like a pod": (kind("Widget", **pod_spec()), [("template", 1, CPU)]),
}


@pytest.mark.parametrize(("thing", "expected"), KINDS.values(), ids=KINDS.keys())
def test_inferred_demand(thing: Map, expected: list[Line]) -> None:
    assert lines(thing) == expected


def test_a_daemon_set_demands_one_pod_per_admitted_node() -> None:
    (one,) = sets_of(obj("apps/v1", "DaemonSet", spec={"template": template()}))
    assert (one.path, one.per_node) == (T, True)


def test_volumes_of_a_stateful_set_are_not_looked_at() -> None:
    spec = {"template": template(), "volumeClaimTemplates": [{}]}
    assert sets_of(obj("apps/v1", "StatefulSet", spec=spec))[0].unmodelled == ("volumes",)


@pytest.mark.parametrize(
    ("thing", "guessed"),
    [
        (deployment(), False),
        (config_map(), False),
        (obj("example.com/v1", "Widget", spec=pod_spec()), True),
        (obj("example.com/v1", "Widget", spec={"size": 3}), False),
        (KINDS["a train job: nodes times resources"][0], True),
    ],
)
def test_a_guess_is_visible_as_such(thing: Map, guessed: bool) -> None:
    assert accepted(v1beta1(thing)).workload.items[0].guessed is guessed


def test_the_live_wish_of_unknown_kinds_is_counted_from_pods() -> None:
    assert sets_of(obj("example.com/v1", "Widget", spec=pod_spec()))[0].counts_pods
    assert not sets_of(deployment())[0].counts_pods


def test_the_walk_is_bounded() -> None:
    deep: Any = template()
    for _ in range(40):
        deep = {"inner": deep}
    assert not infer({"spec": deep}, "example.com", "Widget").found
    many = {"spec": {"all": [template() for _ in range(300)]}}
    assert len(infer(many, "example.com", "Widget").found) == 256


# custompodresources


def declared(replicas: int, limits: Map | None = None, **requests: Any) -> Map:
    return {"replicas": replicas, "requests": requests} | ({"limits": limits} if limits else {})


def test_custompodresources_win_over_the_template() -> None:
    item = generic(deployment(), custompodresources=[declared(1, cpu="4"), declared(3, cpu=2)])
    parsed = accepted(v1beta1(item)).workload
    assert [(one.path, one.replicas, one.request) for one in parsed.sets] == [
        ("", 1, (("cpu", 4000), ("pods", 1))),
        ("", 3, (("cpu", 2000), ("pods", 1))),
    ]
    assert all(one.counts_pods for one in parsed.sets)
    assert parsed.warnings == (
        "spec.resources.GenericItems[0]: custompodresources declares cpu 10, pods 4, but the "
        "template requests cpu 2, pods 2; the declaration counts.",
    )


def test_a_limit_stands_in_where_custompodresources_request_nothing() -> None:
    entry = declared(1, {"memory": "1Gi", "cpu": "2", "nvidia.com/gpu": 1}, cpu="1", memory="0")
    assert lines(obj("example.com/v1", "Widget"), custompodresources=[entry]) == [
        ("", 1, {"cpu": 1000, "memory": Gi, "nvidia.com/gpu": 1})
    ]


def test_an_agreeing_declaration_is_not_worth_a_warning() -> None:
    item = generic(deployment(), custompodresources=[declared(2, cpu="1")])
    assert accepted(v1beta1(item)).workload.warnings == ()


def test_a_declaration_for_an_object_without_templates_is_not_worth_a_warning() -> None:
    item = generic(obj("example.com/v1", "Widget"), custompodresources=[declared(2, cpu="1")])
    assert accepted(v1beta1(item)).workload.warnings == ()


def test_declared_pods_have_the_placement_of_the_templates() -> None:
    spec = ray_spec(group(3), group(2))
    spec["workerGroupSpecs"][0]["template"]["spec"]["nodeSelector"] = {"gpu": "yes"}
    cluster = obj("ray.io/v1", "RayCluster", spec=spec)
    entries = [declared(1, cpu=2), declared(3, cpu=1), declared(2, cpu=1)]
    by_place = sets_of(cluster, custompodresources=entries)
    assert [one.constraint.selector for one in by_place] == [(), (("gpu", "yes"),), ()]
    merged = sets_of(cluster, custompodresources=[declared(6, cpu=1)])
    assert merged[0].constraint.selector == ()


# podSets


def component(thing: Map, *sets: Map, **more: Any) -> Map:
    return {"template": thing, "podSets": list(sets)} | more


def test_declared_pod_sets_win() -> None:
    parsed = accepted(v1beta2(component(deployment(), {"path": T, "replicas": 5}))).workload
    assert [(one.path, one.replicas, one.counts_pods) for one in parsed.sets] == [(T, 5, False)]
    assert parsed.warnings == (
        f"spec.components[0]: podSets declares 5 at {T}, but the template has 2 at {T}; "
        "the declaration counts.",
    )


def test_a_declared_pod_set_without_replicas_is_one_pod() -> None:
    parsed = accepted(v1beta2(component(pod(), {"path": "template"}))).workload
    assert [(one.path, one.replicas) for one in parsed.sets] == [("template", 1)]
    assert parsed.warnings == ()


def test_a_declared_set_has_what_the_operator_adds() -> None:
    cluster = kind("RayCluster", **ray_spec(**AUTOSCALED))
    head = {"path": "template.spec.headGroupSpec.template", "replicas": 1}
    (one,) = accepted(v1beta2(component(cluster, head))).workload.sets
    assert dict(one.request)["cpu"] == 2500


def test_the_submitter_of_a_ray_job_need_not_be_declared() -> None:
    prefix = "template.spec.rayClusterSpec"
    paths = [f"{prefix}.headGroupSpec.template", f"{prefix}.workerGroupSpecs[0].template"]
    parsed = accepted(v1beta2(component(ray_job(1), *({"path": path} for path in paths))))
    assert parsed.workload.warnings == ()


def test_a_declared_set_of_an_unknown_kind() -> None:
    widget = obj("example.com/v1", "Widget", spec={"parts": [{"pod": {"spec": pod_spec()}}]})
    entry = {"path": "template.spec.parts[0].pod", "replicas": 2}
    (one,) = accepted(v1beta2(component(widget, entry))).workload.sets
    assert (one.path, one.replicas, one.counts_pods) == (entry["path"], 2, True)


PATHS = {
    "spec.template": "must start with 'template'",
    "template.spec.tenplate": "there is nothing at 'template.spec.tenplate'",
    "template.spec[0]": "there is nothing at 'template.spec[0]'",
    "template.spec.template.spec.containers[7]": "there is nothing",
    "template.spec.template.spec": "does not lead to a pod template",
    "template.spec..template": "expected '.field' or '[number]' after 'template.spec'",
    "template.spec[x]": "expected '.field' or '[number]' after 'template.spec'",
    "": "must start with",
}


@pytest.mark.parametrize(("path", "message"), PATHS.items(), ids=PATHS.keys())
def test_a_path_that_leads_nowhere(path: str, message: str) -> None:
    problem = read(v1beta2(component(deployment(), {"path": path}))).workload.problem
    assert problem.field == "spec.components[0].podSets[0].path"
    assert message in problem.message


def test_a_path_that_is_given_twice() -> None:
    problem = read(v1beta2(component(deployment(), {"path": T}, {"path": T}))).workload.problem
    assert problem.field == "spec.components[0].podSets[1].path"


# podSetInfos


def test_pod_set_infos_are_merged_and_constrain_the_demand() -> None:
    info = {
        "labels": {"quota": "a"},
        "annotations": {"note": "b"},
        "nodeSelector": {"flavor": "spot"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "schedulingGates": [{"name": "g"}, {"name": "g"}],
    }
    original = component(deployment(), podSetInfos=[info])
    parsed = accepted(v1beta2(original))
    (one,) = parsed.workload.sets
    assert one.constraint.selector == (("flavor", "spot"),)
    assert one.constraint.tolerations[0].key == "spot"
    assert b'"labels":{"quota":"a"}' in parsed.manifests[0]
    assert "nodeSelector" not in str(original["template"]), "the manifest of the user is untouched"
    assert parsed.workload.payload != accepted(v1beta2(deployment())).workload.payload


def test_pod_set_infos_that_contradict_the_template() -> None:
    thing = pod("thing", nodeSelector={"flavor": "reserved"})
    infos = [{"nodeSelector": {"flavor": "spot"}}]
    problem = read(v1beta2(component(thing, podSetInfos=infos))).workload.problem
    assert problem.field == "spec.components[0].podSetInfos[0].nodeSelector.flavor"


def test_pod_set_infos_for_other_pod_sets() -> None:
    problem = read(v1beta2(component(pod(), podSetInfos=[{}, {}]))).workload.problem
    assert problem.field == "spec.components[0].podSetInfos"


@pytest.mark.parametrize(
    ("thing", "tells"),
    [
        pytest.param(pod(), True, id="Pod"),
        pytest.param(job(), True, id="Job"),
        pytest.param(deployment(), False, id="Deployment"),
        pytest.param(obj("example.com/v1", "Widget", spec=pod_spec()), False, id="unknown"),
    ],
)
def test_kinds_that_tell_their_own_end(thing: Map, tells: bool) -> None:
    assert accepted(v1beta1(thing)).workload.items[0].tells_end is tells


def test_pods_of_spark_select_nodes_by_the_application_and_by_sparks_own_names() -> None:
    thing = spark(
        nodeSelector={"a": "1"},
        driver={"nodeSelector": {"b": "2"}},
        sparkConf={
            "spark.kubernetes.node.selector.c": "3",
            "spark.kubernetes.executor.node.selector.d": "4",
        },
    )
    driver, executor = (one.constraint.selector for one in sets_of(thing))
    assert driver == (("a", "1"), ("b", "2"), ("c", "3"))
    assert executor == (("a", "1"), ("c", "3"), ("d", "4"))
