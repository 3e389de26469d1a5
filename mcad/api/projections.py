"""The fields of live objects that are read: the rest is never decoded.

Of a pod that is nine tenths: environments, volumes, managed fields. A leaf is whatever was sent;
what is malformed is for its reader to bear.
"""

from typing import Any, TypedDict

import msgspec


class MetadataPick(TypedDict, total=False):
    """Of any object."""

    name: Any
    namespace: Any
    uid: Any
    resourceVersion: Any
    labels: Any
    ownerReferences: Any
    creationTimestamp: Any
    deletionTimestamp: Any


class WritePick(TypedDict, total=False):
    """Of what the server knows of a field manager."""

    manager: Any
    subresource: Any
    time: Any


class AppWrapperMetadataPick(TypedDict, total=False):
    """Of an AppWrapper: what changes with what it asks for, its version and its place in line."""

    name: Any
    namespace: Any
    uid: Any
    resourceVersion: Any
    generation: Any
    labels: Any
    annotations: Any
    finalizers: Any
    creationTimestamp: Any
    deletionTimestamp: Any
    managedFields: list[WritePick]


class AppWrapperPick(TypedDict, total=False):
    """All of an AppWrapper but its spec, which has a generation."""

    metadata: AppWrapperMetadataPick
    status: Any


class ContainerPick(TypedDict, total=False):
    """Of a container and of the status of one."""

    name: Any
    resources: Any
    restartPolicy: Any
    ports: Any
    allocatedResources: Any


class PodSpecPick(TypedDict, total=False):
    """Of the spec of a pod."""

    nodeName: Any
    containers: list[ContainerPick]
    initContainers: list[ContainerPick]
    resources: Any
    overhead: Any
    hostNetwork: Any
    terminationGracePeriodSeconds: Any


class TerminatedPick(TypedDict, total=False):
    """Of how a container ended."""

    exitCode: Any


class StatePick(TypedDict, total=False):
    """Of the state of a container: nothing that differs between pods that run."""

    terminated: TerminatedPick


class ContainerStatusPick(ContainerPick, total=False):
    """Of the status of a regular container."""

    state: StatePick


class ConditionPick(TypedDict, total=False):
    """Of a condition of a pod or a node."""

    type: Any
    status: Any
    reason: Any
    message: Any
    lastTransitionTime: Any


class PodStatusPick(TypedDict, total=False):
    """Of the status of a pod."""

    phase: Any
    conditions: list[ConditionPick]
    containerStatuses: list[ContainerStatusPick]
    initContainerStatuses: list[ContainerPick]
    resources: Any
    allocatedResources: Any


class PodPick(TypedDict, total=False):
    """Of a pod."""

    metadata: MetadataPick
    spec: PodSpecPick
    status: PodStatusPick


class NodeStatusPick(TypedDict, total=False):
    """Of the status of a node."""

    allocatable: Any
    conditions: list[ConditionPick]


class NodePick(TypedDict, total=False):
    """Of a node; its spec is small."""

    metadata: MetadataPick
    spec: Any
    status: NodeStatusPick


APPWRAPPER: msgspec.json.Decoder[AppWrapperPick] = msgspec.json.Decoder(AppWrapperPick)
NODE: msgspec.json.Decoder[NodePick] = msgspec.json.Decoder(NodePick)
POD: msgspec.json.Decoder[PodPick] = msgspec.json.Decoder(PodPick)
