"""The fields of live objects that are read; all others are not decoded.

Nine tenths of a pod are not read: environments, volumes, managed fields. A leaf may have any type;
its reader has to accept malformed values.
"""

from typing import Any, TypedDict

import msgspec
from msgspec import Raw


class MetadataPick(TypedDict, total=False):
    """The metadata of any object."""

    name: Any
    namespace: Any
    uid: Any
    resourceVersion: Any
    labels: Any
    ownerReferences: Any
    creationTimestamp: Any
    deletionTimestamp: Any


class PodMetadataPick(MetadataPick, total=False):
    """The metadata of a pod."""

    generation: Any


class WritePick(TypedDict, total=False):
    """An entry of ``managedFields``."""

    manager: Any
    subresource: Any
    time: Any


class AppWrapperMetadataPick(TypedDict, total=False):
    """The metadata of an AppWrapper that may affect its demand, version or place in the queue."""

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
    """An AppWrapper without its spec, which has a generation."""

    metadata: AppWrapperMetadataPick
    status: Any


class ContainerPick(TypedDict, total=False):
    """A container, or the status of one."""

    name: Any
    resources: Any
    restartPolicy: Any
    ports: Any
    allocatedResources: Any


class NodeTermPick(TypedDict, total=False):
    """A term of a node affinity."""

    matchFields: Any


class NodeTermsPick(TypedDict, total=False):
    """The terms of a node affinity."""

    nodeSelectorTerms: list[NodeTermPick]


class NodeAffinityPick(TypedDict, total=False):
    """A node affinity."""

    requiredDuringSchedulingIgnoredDuringExecution: NodeTermsPick


class AffinityPick(TypedDict, total=False):
    """The part of an affinity that names the node of a DaemonSet's pod."""

    nodeAffinity: NodeAffinityPick


class PodSpecPick(TypedDict, total=False):
    """The spec of a pod."""

    nodeName: Any
    containers: list[ContainerPick]
    initContainers: list[ContainerPick]
    resources: Any
    overhead: Any
    hostNetwork: Any
    terminationGracePeriodSeconds: Any
    schedulingGates: Any
    affinity: AffinityPick


class TerminatedPick(TypedDict, total=False):
    """The end of a container."""

    exitCode: Any


class WaitingPick(TypedDict, total=False):
    """Why a container waits."""

    waiting: Any


class StatePick(WaitingPick, total=False):
    """The state of a container, without what differs between running pods."""

    terminated: TerminatedPick


class LastEndPick(TerminatedPick, total=False):
    """The end of a container that is started again."""

    reason: Any


class LastStatePick(TypedDict, total=False):
    """The state of a container before it was started again."""

    terminated: LastEndPick


class InitStatusPick(ContainerPick, total=False):
    """The status of an init container. How it ended is not read."""

    state: WaitingPick
    lastState: LastStatePick


class ContainerStatusPick(ContainerPick, total=False):
    """The status of a regular container."""

    state: StatePick
    lastState: LastStatePick


class ConditionPick(TypedDict, total=False):
    """A condition of a pod."""

    type: str  # else the conditions are decoded whole
    status: Any
    reason: Any
    message: Any
    lastTransitionTime: Any


class PodStatusPick(TypedDict, total=False):
    """The status of a pod. Its conditions stay text, because few pods have one that is read: they
    are decoded for pods of AppWrappers, and where the text names a condition that matters."""

    phase: Any
    conditions: Raw
    containerStatuses: list[ContainerStatusPick]
    initContainerStatuses: list[InitStatusPick]
    resources: Any
    allocatedResources: Any
    nominatedNodeName: Any
    extendedResourceClaimStatus: Any


class PodPick(TypedDict, total=False):
    """A pod."""

    metadata: PodMetadataPick
    spec: PodSpecPick
    status: PodStatusPick


class NodeConditionPick(TypedDict, total=False):
    """A condition of a node."""

    type: Any
    status: Any


class NodeStatusPick(TypedDict, total=False):
    """The status of a node."""

    allocatable: Any
    conditions: list[NodeConditionPick]


class NodePick(TypedDict, total=False):
    """A node; its spec is small."""

    metadata: MetadataPick
    spec: Any
    status: NodeStatusPick


APPWRAPPER: msgspec.json.Decoder[AppWrapperPick] = msgspec.json.Decoder(AppWrapperPick)
NODE: msgspec.json.Decoder[NodePick] = msgspec.json.Decoder(NodePick)
POD: msgspec.json.Decoder[PodPick] = msgspec.json.Decoder(PodPick)
POD_CONDITIONS: msgspec.json.Decoder[list[ConditionPick]] = msgspec.json.Decoder(
    list[ConditionPick]
)
