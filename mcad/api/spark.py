"""What the pods of a SparkApplication ask for: the operator turns its fields into options of
spark-submit, and Spark computes the requests.

Sources, with the version of each: of kubeflow/spark-operator 2.4 submission.go and
sparkpod_defaulter.go for the options and their order, and defaults.go for the executors; of Spark
3.5 BasicDriverFeatureStep and BasicExecutorFeatureStep for requests, ResourceProfile for the memory
of an executor, Utils.getDynamicAllocationInitialExecutors for their number, and JavaUtils for the
notation of memory. ``minMemoryOverhead`` is of Spark 4.0.

A field of the driver or of the executor takes precedence over ``sparkConf``, and that over
``memoryOverheadFactor`` of the application: spark-submit keeps the last value of an option.
"""

import re

from mcad.api.labels import labels_of
from mcad.api.located_fields import Part, count_fault
from mcad.api.operators import container, with_containers
from mcad.api.wire import Json, Map, as_list, as_map, as_text

DRIVER, EXECUTOR = "driver", "executor"

_MEMORY = re.compile(r"(\d{1,12})([bkmgtp]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_FACTOR = re.compile(r"\d{1,3}(\.\d{1,9})?", re.ASCII)
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_UNIT = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_MIB = 2**20
_HEAP_MIB = 1024  # spark.driver.memory, spark.executor.memory: 1g
_OVERHEAD_LEAST_MIB = 384  # ResourceProfile.MEMORY_OVERHEAD_MIN_MIB
_JVM_FACTOR, _OTHER_FACTOR = 0.1, 0.4  # spark.kubernetes.memoryOverheadFactor


def driver_pod(_: Part, application: Part) -> Map:
    """The pod of the driver."""
    return _pod(DRIVER, application.value)


def executor_pod(_: Part, application: Part) -> Map:
    """A pod of an executor."""
    return _pod(EXECUTOR, application.value)


def executors(application: Part) -> int:
    """The executors that the driver requests at its start: ``instances``, 1 if it is absent; with
    dynamic allocation the largest of initialExecutors, minExecutors and instances, 0 if none is
    given."""
    instances = _count(application, EXECUTOR, "instances", "spark.executor.instances")
    if not is_dynamic(application.value):
        return 1 if instances is None else instances
    conf, field = "spark.dynamicAllocation", "dynamicAllocation"
    least = _count(application, field, "minExecutors", f"{conf}.minExecutors")
    first = _count(application, field, "initialExecutors", f"{conf}.initialExecutors")
    return max(first or 0, least or 0, instances or 0)


def is_dynamic(application: Map) -> bool:
    """Whether the driver lets executors go and asks for more as it needs them."""
    enabled = as_map(application.get("dynamicAllocation")).get("enabled") is True
    return enabled or _conf(application, "spark.dynamicAllocation.enabled").lower() == "true"


def _count(application: Part, field: str, key: str, conf: str) -> int | None:
    """A number of pods, by its field or by Spark's name; None if it has neither."""
    part = application.at(field)
    if part.value.get(key) is not None:
        return part.count(key, 0)
    value = _conf(application.value, conf)
    if not _COUNT.fullmatch(value) or count_fault(int(value)):
        return None
    return int(value)


def _pod(name: str, application: Map) -> Map:
    """The pod of a role, from its ``template`` if it has one: of Spark 3, it replaces what the
    webhook of the operator would add from the other fields."""
    role = as_map(application.get(name))
    given = as_map(role.get("template"))
    requests = _requests(name, role, application)
    labels: Map = {}
    if given:
        spec, labels = as_map(given.get("spec")), labels_of(given)
        containers = _with_requests(as_list(spec.get("containers")), name, requests)
    else:
        spec = role
        requests |= _gpu(role)
        containers = [container(requests), *as_list(role.get("sidecars"))]
    selector = as_map(spec.get("nodeSelector")) | _node_selector(name, application)
    made = {
        "metadata": {"labels": labels | as_map(role.get("labels"))},
        "spec": {**spec, "nodeSelector": selector, "containers": []},
    }
    return with_containers(made, containers, [])


def _with_requests(containers: list[Json], name: str, requests: Map) -> list[Json]:
    """The containers of a template, with these requests of Spark's own: the one that the operator
    names, else the first (KubernetesUtils.selectSparkContainer)."""
    named = [f"spark-kubernetes-{name}" == as_map(one).get("name") for one in containers]
    position = named.index(True) if any(named) else 0
    own = as_map(containers[position]) if containers else {}
    resources = as_map(own.get("resources"))
    spark = own | {
        "resources": resources | {"requests": as_map(resources.get("requests")) | requests}
    }
    return [*containers[:position], spark, *containers[position + 1 :]]


def _requests(name: str, role: Map, application: Map) -> Map:
    """What Spark asks for in the container of a role: cores, memory and its own resources."""
    cores = (
        role.get("coreRequest")
        or _conf(application, f"spark.kubernetes.{name}.request.cores")
        or role.get("cores")
        or _conf(application, f"spark.{name}.cores")
        or 1
    )
    memory = _memory_mib(name, role, application)
    return {"cpu": cores, "memory": f"{memory}Mi", **_resources(name, application)}


def _memory_mib(name: str, role: Map, application: Map) -> int:
    """MiB of heap and overhead; of an executor, off-heap and PySpark's memory besides."""

    def mib(field: str, default: int) -> int:
        given = as_text(role.get(field)) or _conf(application, f"spark.{name}.{field}")
        return _to_mib(given, default=default)

    heap = mib("memory", _HEAP_MIB)
    least = _to_mib(
        _conf(application, f"spark.{name}.minMemoryOverhead"), default=_OVERHEAD_LEAST_MIB
    )
    overhead = mib("memoryOverhead", max(least, int(heap * _factor(name, application))))
    return heap + overhead + (_more_of_executor(application) if name == EXECUTOR else 0)


def _more_of_executor(application: Map) -> int:
    """MiB beside heap and overhead (ResourceProfile.getResourcesForClusterManager)."""
    more = 0
    if application.get("type") == "Python":
        more += _to_mib(_conf(application, "spark.executor.pyspark.memory"), default=0)
    if _conf(application, "spark.memory.offHeap.enabled").lower() == "true":
        size = _conf(application, "spark.memory.offHeap.size")
        more += _to_mib(size, default=0, unit="b")
    return more


def _factor(name: str, application: Map) -> float:
    """The overhead as a share of the heap."""
    for given in (
        _conf(application, f"spark.{name}.memoryOverheadFactor"),
        _conf(application, "spark.kubernetes.memoryOverheadFactor"),
        as_text(application.get("memoryOverheadFactor")),
    ):
        if _FACTOR.fullmatch(given):
            return float(given)
    return _OTHER_FACTOR if application.get("type") in ("Python", "R") else _JVM_FACTOR


def _gpu(role: Map) -> Map:
    """``gpu`` of a role, which the operator's webhook adds."""
    gpu = as_map(role.get("gpu"))
    return {gpu["name"]: gpu.get("quantity")} if as_text(gpu.get("name")) else {}


def _resources(name: str, application: Map) -> Map:
    """``spark.driver.resource.gpu.amount`` with its ``vendor``, and the like."""
    prefix, found = f"spark.{name}.resource.", {}
    for key, amount in as_map(application.get("sparkConf")).items():
        if key.startswith(prefix) and key.endswith(".amount"):
            what = key.removeprefix(prefix).removesuffix(".amount")
            vendor = _conf(application, f"{prefix}{what}.vendor")
            if what and vendor:
                found[f"{vendor}/{what}"] = amount
    return found


def _node_selector(name: str, application: Map) -> Map:
    """Node labels of the application, and those that Spark's options name."""
    found = dict(as_map(application.get("nodeSelector")))
    for prefix in ("spark.kubernetes.node.selector.", f"spark.kubernetes.{name}.node.selector."):
        for key, value in as_map(application.get("sparkConf")).items():
            if key.startswith(prefix):
                found[key.removeprefix(prefix)] = value
    return found


def _conf(application: Map, key: str) -> str:
    """A property of Spark, "" if it is absent."""
    return as_text(as_map(application.get("sparkConf")).get(key))


def _to_mib(text: str, *, default: int, unit: str = "m") -> int:
    """MiB of memory in Spark's notation, like ``512m`` or ``1g``, rounded down as Spark does; the
    default if it is malformed. ``unit`` is that of a bare number."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        return default
    return int(match[1]) * _UNIT[(match[2] or unit).lower()] // _MIB
