"""The types of built-in kinds, out of the models of the official client.

The client knows the names of the fields, their types and descriptions; what it does not know is in
the tables below: which group a type belongs to, which integers have 64 bits, which strings are
quantities. These are facts of Kubernetes 1.36's OpenAPI document; a test compares with a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from kubernetes.client import models

from mcad.kube.types import Json
from mcad.sim.kinds import Kind
from mcad.sim.objects import decoding
from mcad.sim.objects.decoding import Type

_CORE = "io.k8s.api.core.v1"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_GROUPS: dict[str, str] = {
    "io.k8s.api.apps.v1": r"V1(ControllerRevision|DaemonSet|Deployment|ReplicaSet|StatefulSet"
    r"|RollingUpdate)\w*",
    "io.k8s.api.batch.v1": r"V1(CronJob|Job|PodFailurePolicy|SuccessPolicy|UncountedTerminated)\w*",
    "io.k8s.api.autoscaling.v1": r"V1Scale(Spec|Status)?",
    "io.k8s.api.policy.v1": r"V1PodDisruptionBudget\w*",
    "io.k8s.api.events.v1": r"EventsV1\w+",
    "io.k8s.api.coordination.v1": r"V1Lease(Spec)?",
    "io.k8s.api.discovery.v1": r"DiscoveryV1\w+|V1Endpoint(Conditions|Hints|Slice)?"
    r"|V1For(Node|Zone)",
    "io.k8s.api.networking.v1": r"V1(NetworkPolicy\w*|IPBlock)",
    "io.k8s.api.rbac.v1": r"RbacV1\w+|V1(AggregationRule|PolicyRule|(Cluster)?Role(Binding|Ref)?)",
    "io.k8s.api.storage.v1": r"V1StorageClass",
    "io.k8s.api.scheduling.v1": r"V1PriorityClass",
    "io.k8s.api.node.v1": r"V1(Overhead|RuntimeClass|Scheduling)",
    "io.k8s.api.authorization.v1": r"V1((Field|Label)SelectorAttributes|(Non)?ResourceAttributes"
    r"|(Self)?SubjectAccessReview\w*)",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1": r"ApiextensionsV1\w+"
    r"|V1(CustomResource\w+|ExternalDocumentation|JSONSchemaProps|SelectableField|ValidationRule"
    r"|WebhookConversion)",
    _META: r"V1(Condition|DeleteOptions|FieldSelectorRequirement|LabelSelector(Requirement)?"
    r"|ListMeta|ManagedFieldsEntry|ObjectMeta|OwnerReference|Preconditions|ShardInfo|Status"
    r"|StatusCause|StatusDetails)",
}
_OF_GROUP = {
    "": "CoreV1",
    "apiextensions.k8s.io": "ApiextensionsV1",
    "discovery.k8s.io": "DiscoveryV1",
    "events.k8s.io": "EventsV1",
    "rbac.authorization.k8s.io": "RbacV1",
}
"""Where two groups have a type of the same name, the client puts the group in front."""

_INT64 = frozenset(
    {
        "activeDeadlineSeconds",
        "capacity",
        "deletionGracePeriodSeconds",
        "expirationSeconds",
        "fsGroup",
        "generation",
        "gid",
        "gracePeriodSeconds",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "minProperties",
        "observedGeneration",
        "remainingItemCount",
        "revision",
        "runAsGroup",
        "runAsUser",
        "seconds",
        "sizeBytes",
        "startingDeadlineSeconds",
        "supplementalGroups",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "uid",
    }
)
_INT_OR_STRING = frozenset({"maxUnavailable", "minAvailable", "targetPort", "maxSurge", "port"})
_MICRO_TIMES = frozenset({"eventTime", "acquireTime", "renewTime", "lastObservedTime"})
_QUANTITIES: dict[str, frozenset[str]] = {
    "V1PodSpec": frozenset({"overhead"}),
    "V1PodStatus": frozenset({"allocatedResources"}),
    "V1NodeStatus": frozenset({"allocatable", "capacity"}),
    "V1PersistentVolumeClaimStatus": frozenset({"allocatedResources", "capacity"}),
    "V1PersistentVolumeSpec": frozenset({"capacity"}),
    "V1ResourceQuotaSpec": frozenset({"hard"}),
    "V1ResourceQuotaStatus": frozenset({"hard", "used"}),
    "V1Overhead": frozenset({"podFixed"}),
    "V1ResourceRequirements": frozenset({"limits", "requests"}),
    "V1VolumeResourceRequirements": frozenset({"limits", "requests"}),
    "V1ContainerStatus": frozenset({"allocatedResources"}),
    "V1NodeAllocatableResourceClaimStatus": frozenset({"resources"}),
    "V1LimitRangeItem": frozenset(
        {"default", "defaultRequest", "max", "maxLimitRequestRatio", "min"}
    ),
    "V1EmptyDirVolumeSource": frozenset({"sizeLimit"}),
    "V1ResourceFieldSelector": frozenset({"divisor"}),
}
_CONDITION = frozenset({"type", "status"})
_REQUIRED: dict[str, frozenset[str]] = {
    "V1ControllerRevision": frozenset({"revision"}),
    "V1DaemonSet": frozenset(),
    "V1DaemonSetCondition": _CONDITION,
    "V1Deployment": frozenset(),
    "V1DeploymentCondition": _CONDITION,
    "V1ReplicaSet": frozenset(),
    "V1ReplicaSetCondition": _CONDITION,
    "V1StatefulSet": frozenset(),
    "V1StatefulSetCondition": _CONDITION,
}
"""Where the client of another version says otherwise."""

_SHARED = ("V1Binding", "V1DeleteOptions", "V1Scale", "V1Status")
"""What requests and answers are made of besides the kinds themselves."""
_SCALARS = {"bool": decoding.BOOL, "float": decoding.FLOAT, "bytes": decoding.BYTES}
_NESTED = re.compile(r"(List|Dict)\[(?:str, )?(.+)\]")


def type_of(kind: Kind) -> Type | None:
    """The type of a built-in kind, None if the client has no model for it."""
    name = _class_of(kind.group, kind.kind)
    return _struct(name) if name else None


def meta_type(name: str) -> Type:
    """``ObjectMeta``, ``DeleteOptions`` and others that every kind shares."""
    return _struct(f"V1{name}")


def _class_of(group: str, kind: str) -> str:
    candidates = (f"{_OF_GROUP.get(group, '')}{kind}" if group in _OF_GROUP else "", f"V1{kind}")
    for name in candidates:
        if name and hasattr(models, name):
            return name
    return ""


@cache
def _struct(name: str) -> Type:
    short = _component(name).rpartition(".")[2]
    return Type(decoding.STRUCT, name=short, load=lambda: _fields(name))


def _fields(name: str) -> Mapping[str, Type]:
    model: Any = getattr(models, name)
    attributes: Mapping[str, str] = model.attribute_map
    return {
        attributes[attribute]: _type(name, attributes[attribute], text)
        for attribute, text in model.openapi_types.items()
    }


def _type(owner: str, field: str, text: str) -> Type:
    """The type that the client writes as ``List[V1Container]``."""
    nested = _NESTED.fullmatch(text)
    if nested:
        kind = decoding.LIST if nested[1] == "List" else decoding.MAP
        return Type(kind, _type(owner, field, nested[2]))
    if field in _QUANTITIES.get(owner, ()):
        return Type(decoding.QUANTITY)
    if text == "int":
        return Type(decoding.INT64 if field in _INT64 else decoding.INT32)
    if text == "datetime":
        return Type(decoding.MICRO_TIME if field in _MICRO_TIMES else decoding.TIME)
    if text == "object":
        return Type(decoding.INT_OR_STRING if field in _INT_OR_STRING else decoding.ANY)
    if text == "str":
        return Type(decoding.STRING)
    return Type(_SCALARS[text]) if text in _SCALARS else _struct(text)


# OpenAPI ----------------------------------------------------------------------------------------


@cache
def _component(name: str) -> str:
    group = next((group for group, form in _GROUPS.items() if re.fullmatch(form, name)), _CORE)
    return f"{group}.{re.sub('^[A-Za-z]*?V1(?=[A-Z])', '', name)}"


def component_name(kind: Kind) -> str:
    """What OpenAPI calls a built-in kind: ``io.k8s.api.core.v1.Pod``; "" if there is no model."""
    name = _class_of(kind.group, kind.kind)
    return _component(name) if name else ""


_SCHEMAS: dict[str, Json] = {
    decoding.STRING: {"type": "string"},
    decoding.BOOL: {"type": "boolean"},
    decoding.INT32: {"type": "integer", "format": "int32"},
    decoding.INT64: {"type": "integer", "format": "int64"},
    decoding.FLOAT: {"type": "number", "format": "double"},
    decoding.BYTES: {"type": "string", "format": "byte"},
    decoding.ANY: {},
}
_NAMED: dict[str, tuple[str, Json]] = {
    decoding.QUANTITY: (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    decoding.INT_OR_STRING: (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    decoding.TIME: (f"{_META}.Time", {"type": "string", "format": "date-time"}),
    decoding.MICRO_TIME: (f"{_META}.MicroTime", {"type": "string", "format": "date-time"}),
}


def components(kinds: Iterable[Kind]) -> dict[str, Json]:
    """The schemas of built-in kinds and of all that they refer to, by OpenAPI name.

    Scale, DeleteOptions and Status are always among them.
    """
    found: dict[str, Json] = {}
    waiting = [(name, kind) for kind in kinds if (name := _class_of(kind.group, kind.kind))]
    roots = dict(waiting)
    todo = [*roots, *_SHARED]
    while todo:
        name = todo.pop()
        component = _component(name)
        if component in found:
            continue
        schema, below = _schema(name)
        kind = roots.get(name)
        if kind is not None:
            schema = schema | {"x-kubernetes-group-version-kind": [_gvk(kind)]}
        found[component] = schema
        todo += below
    return found | dict(_NAMED.values())


def _gvk(kind: Kind) -> Json:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


@lru_cache(None)
def _schema(name: str) -> tuple[Json, tuple[str, ...]]:
    """The schema of a model and the models that it refers to."""
    model: Any = getattr(models, name)
    properties: Json = {}
    below: list[str] = []
    required = []
    for attribute, field in model.attribute_map.items():
        # pydantic reserves some names ("schema"), so the client gives those fields another one.
        info = model.model_fields.get(attribute) or _by_alias(model, field)
        text = model.openapi_types[attribute]
        schema = {"description": info.description} if info.description else {}
        schema |= _property(_type(name, field, text), text, below)
        properties[field] = schema
        if field in _REQUIRED[name] if name in _REQUIRED else info.is_required():
            required.append(field)
    schema = {"type": "object", "properties": properties}
    text = (model.__doc__ or "").partition("Attributes:")[0].strip()
    described = {"description": " ".join(text.split())} if text else {}
    return described | schema | ({"required": required} if required else {}), tuple(below)


def _by_alias(model: Any, alias: str) -> Any:
    return next(one for one in model.model_fields.values() if one.serialization_alias == alias)


def _property(one: Type, text: str, below: list[str]) -> Json:
    nested = _NESTED.fullmatch(text)
    if nested and one.of is not None:
        inner = _property(one.of, nested[2], below)
        if one.kind == decoding.LIST:
            return {"type": "array", "items": inner}
        return {"type": "object", "additionalProperties": inner}
    if one.kind == decoding.STRUCT:
        below.append(text)
        return _reference(_component(text))
    if one.kind in _NAMED:
        return _reference(_NAMED[one.kind][0])
    return dict(_SCHEMAS[one.kind])


def _reference(component: str) -> Json:
    return {"allOf": [{"$ref": f"#/components/schemas/{component}"}]}
