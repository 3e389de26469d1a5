"""What Go calls the types behind JSON texts: only its error messages show them.

Facts of ``k8s.io/api`` v0.36: named string types, and structs that are embedded in others (their
fields are written as if they were the outer struct's, but messages name them).
"""

ANYWHERE: dict[str, str] = {
    "accessModes": "PersistentVolumeAccessMode",
    "add": "Capability",
    "addressType": "AddressType",
    "cachingMode": "AzureDataDiskCachingMode",
    "completionMode": "CompletionMode",
    "concurrencyPolicy": "ConcurrencyPolicy",
    "conditionType": "PodConditionType",
    "dnsPolicy": "DNSPolicy",
    "drop": "Capability",
    "effect": "TaintEffect",
    "externalTrafficPolicy": "ServiceExternalTrafficPolicy",
    "fsGroupChangePolicy": "PodFSGroupChangePolicy",
    "health": "ResourceHealthStatus",
    "internalTrafficPolicy": "ServiceInternalTrafficPolicy",
    "ipFamilies": "IPFamily",
    "ipFamilyPolicy": "IPFamilyPolicy",
    "ipMode": "LoadBalancerIPMode",
    "medium": "StorageMedium",
    "mountPropagation": "MountPropagationMode",
    "nodeAffinityPolicy": "NodeInclusionPolicy",
    "nodeTaintsPolicy": "NodeInclusionPolicy",
    "operation": "ManagedFieldsOperationType",
    "persistentVolumeReclaimPolicy": "PersistentVolumeReclaimPolicy",
    "podManagementPolicy": "PodManagementPolicyType",
    "podReplacementPolicy": "PodReplacementPolicy",
    "policyTypes": "PolicyType",
    "preemptionPolicy": "PreemptionPolicy",
    "procMount": "ProcMountType",
    "propagationPolicy": "DeletionPropagation",
    "protocol": "Protocol",
    "pullPolicy": "PullPolicy",
    "qosClass": "PodQOSClass",
    "reclaimPolicy": "PersistentVolumeReclaimPolicy",
    "recursiveReadOnly": "RecursiveReadOnlyMode",
    "resize": "PodResizeStatus",
    "resourceID": "ResourceID",
    "scheme": "URIScheme",
    "scope": "ResourceScope",
    "scopeName": "ResourceQuotaScope",
    "scopes": "ResourceQuotaScope",
    "seLinuxChangePolicy": "PodSELinuxChangePolicy",
    "sessionAffinity": "ServiceAffinity",
    "stopSignal": "Signal",
    "unhealthyPodEvictionPolicy": "UnhealthyPodEvictionPolicyType",
    "volumeBindingMode": "VolumeBindingMode",
    "volumeMode": "PersistentVolumeMode",
    "volumesInUse": "UniqueVolumeName",
    "whenDeleted": "PersistentVolumeClaimRetentionPolicyType",
    "whenScaled": "PersistentVolumeClaimRetentionPolicyType",
    "whenUnsatisfiable": "UnsatisfiableConstraintAction",
    "imagePullPolicy": "PullPolicy",
    "terminationMessagePolicy": "TerminationMessagePolicy",
}
"""Fields that have the same named type in every struct."""

IN_STRUCT: dict[str, dict[str, str]] = {
    "AppArmorProfile": {"type": "AppArmorProfileType"},
    "AttachedVolume": {"name": "UniqueVolumeName"},
    "AzureDiskVolumeSource": {"kind": "AzureDataDiskKind"},
    "Condition": {"status": "ConditionStatus"},
    "Container": {"restartPolicy": "ContainerRestartPolicy"},
    "ContainerResizePolicy": {
        "resourceName": "ResourceName",
        "restartPolicy": "ResourceResizeRestartPolicy",
    },
    "ContainerRestartRule": {"action": "ContainerRestartRuleAction"},
    "ContainerRestartRuleOnExitCodes": {"operator": "ContainerRestartRuleOnExitCodesOperator"},
    "CustomResourceConversion": {"strategy": "ConversionStrategyType"},
    "CustomResourceDefinitionCondition": {
        "status": "ConditionStatus",
        "type": "CustomResourceDefinitionConditionType",
    },
    "DaemonSetCondition": {"status": "ConditionStatus", "type": "DaemonSetConditionType"},
    "DaemonSetUpdateStrategy": {"type": "DaemonSetUpdateStrategyType"},
    "DeploymentCondition": {"status": "ConditionStatus", "type": "DeploymentConditionType"},
    "DeploymentStrategy": {"type": "DeploymentStrategyType"},
    "EphemeralContainer": {"restartPolicy": "ContainerRestartPolicy"},
    "FieldSelectorRequirement": {"operator": "FieldSelectorOperator"},
    "HostPathVolumeSource": {"type": "HostPathType"},
    "JobCondition": {"status": "ConditionStatus", "type": "JobConditionType"},
    "LabelSelectorRequirement": {"operator": "LabelSelectorOperator"},
    "LeaseSpec": {"strategy": "CoordinatedLeaseStrategy"},
    "LimitRangeItem": {"type": "LimitType"},
    "ModifyVolumeStatus": {"status": "PersistentVolumeClaimModifyVolumeStatus"},
    "NamespaceCondition": {"status": "ConditionStatus", "type": "NamespaceConditionType"},
    "NamespaceSpec": {"finalizers": "FinalizerName"},
    "NamespaceStatus": {"phase": "NamespacePhase"},
    "NodeAddress": {"type": "NodeAddressType"},
    "NodeCondition": {"status": "ConditionStatus", "type": "NodeConditionType"},
    "NodeSelectorRequirement": {"operator": "NodeSelectorOperator"},
    "NodeStatus": {"phase": "NodePhase"},
    "PersistentVolumeClaimCondition": {
        "status": "ConditionStatus",
        "type": "PersistentVolumeClaimConditionType",
    },
    "PersistentVolumeClaimStatus": {"phase": "PersistentVolumeClaimPhase"},
    "PersistentVolumeStatus": {"phase": "PersistentVolumePhase"},
    "PodCondition": {"status": "ConditionStatus", "type": "PodConditionType"},
    "PodFailurePolicyOnExitCodesRequirement": {"operator": "PodFailurePolicyOnExitCodesOperator"},
    "PodFailurePolicyOnPodConditionsPattern": {
        "status": "ConditionStatus",
        "type": "PodConditionType",
    },
    "PodFailurePolicyRule": {"action": "PodFailurePolicyAction"},
    "PodOS": {"name": "OSName"},
    "PodSecurityContext": {"supplementalGroupsPolicy": "SupplementalGroupsPolicy"},
    "PodSpec": {"restartPolicy": "RestartPolicy"},
    "PodStatus": {"phase": "PodPhase"},
    "ReplicaSetCondition": {"status": "ConditionStatus", "type": "ReplicaSetConditionType"},
    "ReplicationControllerCondition": {
        "status": "ConditionStatus",
        "type": "ReplicationControllerConditionType",
    },
    "ResourceStatus": {"name": "ResourceName"},
    "ScopedResourceSelectorRequirement": {"operator": "ScopeSelectorOperator"},
    "SeccompProfile": {"type": "SeccompProfileType"},
    "Secret": {"type": "SecretType"},
    "ServiceSpec": {"type": "ServiceType"},
    "StatefulSetCondition": {"status": "ConditionStatus", "type": "StatefulSetConditionType"},
    "StatefulSetUpdateStrategy": {"type": "StatefulSetUpdateStrategyType"},
    "Status": {"reason": "StatusReason"},
    "StatusCause": {"reason": "CauseType"},
    "Toleration": {"operator": "TolerationOperator"},
}

_REFERENCE = "LocalObjectReference"
EMBEDDED: dict[str, str] = {
    "Volume": "VolumeSource",
    "PersistentVolumeSpec": "PersistentVolumeSource",
    "Probe": "ProbeHandler",
    "EphemeralContainer": "EphemeralContainerCommon",
    "ConfigMapEnvSource": _REFERENCE,
    "ConfigMapKeySelector": _REFERENCE,
    "ConfigMapProjection": _REFERENCE,
    "ConfigMapVolumeSource": _REFERENCE,
    "SecretEnvSource": _REFERENCE,
    "SecretKeySelector": _REFERENCE,
    "SecretProjection": _REFERENCE,
}
"""The struct that is embedded in another one."""

OWN: dict[str, frozenset[str]] = {
    "Volume": frozenset({"name"}),
    "PersistentVolumeSpec": frozenset(
        {
            "accessModes",
            "capacity",
            "claimRef",
            "mountOptions",
            "nodeAffinity",
            "persistentVolumeReclaimPolicy",
            "storageClassName",
            "volumeAttributesClassName",
            "volumeMode",
        }
    ),
    "Probe": frozenset(
        {
            "failureThreshold",
            "initialDelaySeconds",
            "periodSeconds",
            "successThreshold",
            "terminationGracePeriodSeconds",
            "timeoutSeconds",
        }
    ),
    "EphemeralContainer": frozenset({"targetContainerName"}),
    "ConfigMapEnvSource": frozenset({"optional"}),
    "ConfigMapKeySelector": frozenset({"key", "optional"}),
    "ConfigMapProjection": frozenset({"items", "optional"}),
    "ConfigMapVolumeSource": frozenset({"defaultMode", "items", "optional"}),
    "SecretEnvSource": frozenset({"optional"}),
    "SecretKeySelector": frozenset({"key", "optional"}),
    "SecretProjection": frozenset({"items", "optional"}),
}
"""The fields of such a struct that are its own."""


def string_type(struct: str, field: str) -> str:
    """The named type of a text, "" if it is a plain string."""
    return IN_STRUCT.get(struct, {}).get(field) or ANYWHERE.get(field, "")


def go_name(struct: str, field: str) -> str:
    """The field as paths in messages have it: ``ProbeHandler.httpGet``."""
    outer = EMBEDDED.get(struct)
    if outer is None or field in OWN[struct]:
        return field
    return f"{outer}.{field}"
