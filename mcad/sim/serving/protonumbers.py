"""The field numbers of Kubernetes' protobuf messages, by the name of the OpenAPI component.

Facts of ``generated.proto`` of Kubernetes 1.37; numbers are never used twice, so older clients are
understood as well. Fields are numbered from 1 on, ``4=name`` goes on from there. ``*`` marks a
scalar that Go has behind a pointer, so that its zero is a value and not the lack of one; ``+`` is
a message whose fields are, in JSON, those of the message around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Field:
    """One numbered field: its JSON name, or the component that it embeds."""

    name: str
    is_pointer: bool = False
    is_embedded: bool = False


@cache
def numbers(component: str) -> Mapping[int, Field]:
    """The fields of ``core.v1.PodSpec`` by number; none if the message is not known."""
    return dict(_parse(_table().get(component, "")))


@cache
def _table() -> Mapping[str, str]:
    entries = _NUMBERS.replace("\n  ", " ").strip().splitlines()
    return dict(entry.split(": ", 1) for entry in entries)


def _parse(text: str) -> Iterator[tuple[int, Field]]:
    number = 0
    for word in text.split():
        jump, found, name = word.rpartition("=")
        number = int(jump) if found else number + 1
        yield number, Field(name.strip("+*"), name.endswith("*"), name.startswith("+"))


_NUMBERS = """
apps.v1.ControllerRevision: metadata data revision
apps.v1.DaemonSet: metadata spec status
apps.v1.DaemonSetCondition: type status lastTransitionTime reason message
apps.v1.DaemonSetSpec: selector template updateStrategy minReadySeconds 6=revisionHistoryLimit*
apps.v1.DaemonSetStatus: currentNumberScheduled numberMisscheduled desiredNumberScheduled
  numberReady observedGeneration updatedNumberScheduled numberAvailable numberUnavailable
  collisionCount* conditions
apps.v1.DaemonSetUpdateStrategy: type rollingUpdate
apps.v1.Deployment: metadata spec status
apps.v1.DeploymentCondition: type status 4=reason message lastUpdateTime lastTransitionTime
apps.v1.DeploymentSpec: replicas* selector template strategy minReadySeconds revisionHistoryLimit*
  paused 9=progressDeadlineSeconds*
apps.v1.DeploymentStatus: observedGeneration replicas updatedReplicas availableReplicas
  unavailableReplicas conditions readyReplicas collisionCount* terminatingReplicas*
apps.v1.DeploymentStrategy: type rollingUpdate
apps.v1.ReplicaSet: metadata spec status
apps.v1.ReplicaSetCondition: type status lastTransitionTime reason message
apps.v1.ReplicaSetSpec: replicas* selector template minReadySeconds
apps.v1.ReplicaSetStatus: replicas fullyLabeledReplicas observedGeneration readyReplicas
  availableReplicas conditions terminatingReplicas*
apps.v1.RollingUpdateDaemonSet: maxUnavailable maxSurge
apps.v1.RollingUpdateDeployment: maxUnavailable maxSurge
apps.v1.RollingUpdateStatefulSetStrategy: partition* maxUnavailable
apps.v1.StatefulSet: metadata spec status
apps.v1.StatefulSetCondition: type status lastTransitionTime reason message
apps.v1.StatefulSetOrdinals: start
apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted whenScaled
apps.v1.StatefulSetSpec: replicas* selector template volumeClaimTemplates serviceName
  podManagementPolicy updateStrategy revisionHistoryLimit* minReadySeconds
  persistentVolumeClaimRetentionPolicy ordinals
apps.v1.StatefulSetStatus: observedGeneration replicas readyReplicas currentReplicas
  updatedReplicas currentRevision updateRevision 9=collisionCount* conditions availableReplicas
apps.v1.StatefulSetUpdateStrategy: type rollingUpdate
authorization.v1.FieldSelectorAttributes: rawSelector requirements
authorization.v1.LabelSelectorAttributes: rawSelector requirements
authorization.v1.NonResourceAttributes: path verb
authorization.v1.ResourceAttributes: namespace verb group version resource subresource name
  fieldSelector labelSelector
authorization.v1.SelfSubjectAccessReview: metadata spec status
authorization.v1.SelfSubjectAccessReviewSpec: resourceAttributes nonResourceAttributes
authorization.v1.SubjectAccessReviewStatus: allowed reason evaluationError denied
autoscaling.v1.Scale: metadata spec status
autoscaling.v1.ScaleSpec: replicas
autoscaling.v1.ScaleStatus: replicas selector
batch.v1.CronJob: metadata spec status
batch.v1.CronJobSpec: schedule startingDeadlineSeconds* concurrencyPolicy suspend* jobTemplate
  successfulJobsHistoryLimit* failedJobsHistoryLimit* timeZone*
batch.v1.CronJobStatus: active 4=lastScheduleTime lastSuccessfulTime
batch.v1.Job: metadata spec status
batch.v1.JobCondition: type status lastProbeTime lastTransitionTime reason message
batch.v1.JobSchedulingConfiguration: schedulingPolicy schedulingConstraints disruptionMode
  resourceClaims
batch.v1.JobSpec: parallelism* completions* activeDeadlineSeconds* selector manualSelector*
  template backoffLimit* ttlSecondsAfterFinished* completionMode* suspend* podFailurePolicy
  backoffLimitPerIndex* maxFailedIndexes* podReplacementPolicy* managedBy* successPolicy
  scheduling
batch.v1.JobStatus: conditions startTime completionTime active succeeded failed completedIndexes
  uncountedTerminatedPods ready* failedIndexes* terminating*
batch.v1.JobTemplateSpec: metadata spec
batch.v1.PodFailurePolicy: rules
batch.v1.PodFailurePolicyOnExitCodesRequirement: containerName* operator values
batch.v1.PodFailurePolicyOnPodConditionsPattern: type status
batch.v1.PodFailurePolicyRule: action onExitCodes onPodConditions
batch.v1.SuccessPolicy: rules
batch.v1.SuccessPolicyRule: succeededIndexes* succeededCount*
batch.v1.UncountedTerminatedPods: succeeded failed
coordination.v1.Lease: metadata spec
coordination.v1.LeaseSpec: holderIdentity* leaseDurationSeconds* acquireTime renewTime
  leaseTransitions* strategy* preferredHolder*
core.v1.AWSElasticBlockStoreVolumeSource: volumeID fsType partition readOnly
core.v1.Affinity: nodeAffinity podAffinity podAntiAffinity
core.v1.AppArmorProfile: type localhostProfile*
core.v1.AttachedVolume: name devicePath
core.v1.AzureDiskVolumeSource: diskName diskURI cachingMode* fsType* readOnly* kind*
core.v1.AzureFilePersistentVolumeSource: secretName shareName readOnly secretNamespace*
core.v1.AzureFileVolumeSource: secretName shareName readOnly
core.v1.Binding: metadata target
core.v1.CSIPersistentVolumeSource: driver volumeHandle readOnly fsType volumeAttributes
  controllerPublishSecretRef nodeStageSecretRef nodePublishSecretRef controllerExpandSecretRef
  nodeExpandSecretRef
core.v1.CSIVolumeSource: driver readOnly* fsType* volumeAttributes nodePublishSecretRef
core.v1.Capabilities: add drop
core.v1.CephFSPersistentVolumeSource: monitors path user secretFile secretRef readOnly
core.v1.CephFSVolumeSource: monitors path user secretFile secretRef readOnly
core.v1.CinderPersistentVolumeSource: volumeID fsType readOnly secretRef
core.v1.CinderVolumeSource: volumeID fsType readOnly secretRef
core.v1.ClientIPConfig: timeoutSeconds*
core.v1.ClusterTrustBundleProjection: name* signerName* labelSelector path optional* user*
core.v1.ConfigMap: metadata data binaryData immutable*
core.v1.ConfigMapEnvSource: +core.v1.LocalObjectReference optional*
core.v1.ConfigMapKeySelector: +core.v1.LocalObjectReference key optional*
core.v1.ConfigMapNodeConfigSource: namespace name uid resourceVersion kubeletConfigKey
core.v1.ConfigMapProjection: +core.v1.LocalObjectReference items 4=optional*
core.v1.ConfigMapVolumeSource: +core.v1.LocalObjectReference items defaultMode* optional*
  defaultUser*
core.v1.Container: name image command args workingDir ports env resources volumeMounts
  livenessProbe readinessProbe lifecycle terminationMessagePath imagePullPolicy securityContext
  stdin stdinOnce tty envFrom terminationMessagePolicy volumeDevices startupProbe resizePolicy
  restartPolicy* restartPolicyRules
core.v1.ContainerExtendedResourceRequest: containerName resourceName requestName
core.v1.ContainerImage: names sizeBytes
core.v1.ContainerPort: name hostPort containerPort protocol hostIP
core.v1.ContainerResizePolicy: resourceName restartPolicy
core.v1.ContainerRestartRule: action exitCodes
core.v1.ContainerRestartRuleOnExitCodes: operator values
core.v1.ContainerState: waiting running terminated
core.v1.ContainerStateRunning: startedAt
core.v1.ContainerStateTerminated: exitCode signal reason message startedAt finishedAt containerID
core.v1.ContainerStateWaiting: reason message
core.v1.ContainerStatus: name state lastState ready restartCount image imageID containerID
  started* allocatedResources resources volumeMounts user allocatedResourcesStatus stopSignal*
core.v1.ContainerUser: linux
core.v1.DaemonEndpoint: Port
core.v1.DownwardAPIProjection: items
core.v1.DownwardAPIVolumeFile: path fieldRef resourceFieldRef mode* user*
core.v1.DownwardAPIVolumeSource: items defaultMode* defaultUser*
core.v1.EmptyDirVolumeSource: medium sizeLimit mode*
core.v1.EndpointAddress: ip targetRef hostname nodeName*
core.v1.EndpointPort: name port protocol appProtocol*
core.v1.EndpointSubset: addresses notReadyAddresses ports
core.v1.Endpoints: metadata subsets
core.v1.EnvFromSource: prefix configMapRef secretRef
core.v1.EnvVar: name value valueFrom
core.v1.EnvVarSource: fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef
core.v1.EphemeralContainer: +core.v1.EphemeralContainerCommon targetContainerName
core.v1.EphemeralContainerCommon: name image command args workingDir ports env resources
  volumeMounts livenessProbe readinessProbe lifecycle terminationMessagePath imagePullPolicy
  securityContext stdin stdinOnce tty envFrom terminationMessagePolicy volumeDevices startupProbe
  resizePolicy restartPolicy* restartPolicyRules
core.v1.EphemeralVolumeSource: volumeClaimTemplate
core.v1.Event: metadata involvedObject reason message source firstTimestamp lastTimestamp count
  type eventTime series action related reportingComponent reportingInstance
core.v1.EventSeries: count lastObservedTime
core.v1.EventSource: component host
core.v1.EvictionResponder: name priority*
core.v1.ExecAction: command
core.v1.FCVolumeSource: targetWWNs lun* fsType readOnly wwids
core.v1.FileKeySelector: volumeName path key optional*
core.v1.FlexPersistentVolumeSource: driver fsType secretRef readOnly options
core.v1.FlexVolumeSource: driver fsType secretRef readOnly options
core.v1.FlockerVolumeSource: datasetName datasetUUID
core.v1.GCEPersistentDiskVolumeSource: pdName fsType partition readOnly
core.v1.GRPCAction: port service* mode*
core.v1.GitRepoVolumeSource: repository revision directory
core.v1.GlusterfsPersistentVolumeSource: endpoints path readOnly endpointsNamespace*
core.v1.GlusterfsVolumeSource: endpoints path readOnly
core.v1.HTTPGetAction: path port host scheme httpHeaders protocol*
core.v1.HTTPHeader: name value
core.v1.HostAlias: ip hostnames
core.v1.HostIP: ip
core.v1.HostPathVolumeSource: path type*
core.v1.ISCSIPersistentVolumeSource: targetPortal iqn lun iscsiInterface fsType readOnly portals
  chapAuthDiscovery 10=secretRef chapAuthSession initiatorName*
core.v1.ISCSIVolumeSource: targetPortal iqn lun iscsiInterface fsType readOnly portals
  chapAuthDiscovery 10=secretRef chapAuthSession initiatorName*
core.v1.ImageVolumeSource: reference pullPolicy
core.v1.ImageVolumeStatus: imageRef
core.v1.KeyToPath: key path mode* user*
core.v1.Lifecycle: postStart preStop stopSignal*
core.v1.LifecycleHandler: exec httpGet tcpSocket sleep
core.v1.LimitRange: metadata spec
core.v1.LimitRangeItem: type max min default defaultRequest maxLimitRequestRatio
core.v1.LimitRangeSpec: limits
core.v1.LinuxContainerUser: uid gid supplementalGroups
core.v1.LoadBalancerIngress: ip hostname ipMode* ports
core.v1.LoadBalancerStatus: ingress
core.v1.LocalObjectReference: name
core.v1.LocalVolumeSource: path fsType*
core.v1.ModifyVolumeStatus: targetVolumeAttributesClassName status
core.v1.NFSVolumeSource: server path readOnly
core.v1.Namespace: metadata spec status
core.v1.NamespaceCondition: type status 4=lastTransitionTime reason message
core.v1.NamespaceSpec: finalizers
core.v1.NamespaceStatus: phase conditions
core.v1.Node: metadata spec status
core.v1.NodeAddress: type address
core.v1.NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
core.v1.NodeAllocatableMappedResources: name quantity
core.v1.NodeAllocatableOverheadResources: name perPod perContainer
core.v1.NodeAllocatableResourceClaimStatus: resourceClaimName containers 4=mapping overhead
core.v1.NodeCondition: type status lastHeartbeatTime lastTransitionTime reason message
core.v1.NodeConfigSource: 2=configMap
core.v1.NodeConfigStatus: assigned active lastKnownGood error
core.v1.NodeDaemonEndpoints: kubeletEndpoint
core.v1.NodeFeatures: supplementalGroupsPolicy*
core.v1.NodePodPreemptionPolicy: disableResizePreemption
core.v1.NodeRuntimeHandler: name features
core.v1.NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts* userNamespaces*
core.v1.NodeSelector: nodeSelectorTerms
core.v1.NodeSelectorRequirement: key operator values
core.v1.NodeSelectorTerm: matchExpressions matchFields
core.v1.NodeSpec: podCIDR externalID providerID unschedulable taints configSource podCIDRs
  podPreemptionPolicy
core.v1.NodeStatus: capacity allocatable phase conditions addresses daemonEndpoints nodeInfo
  images volumesInUse volumesAttached config runtimeHandlers features declaredFeatures
core.v1.NodeSwapStatus: capacity*
core.v1.NodeSystemInfo: machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion
  kubeletVersion kubeProxyVersion operatingSystem architecture swap runningInUserNamespace*
core.v1.ObjectFieldSelector: apiVersion fieldPath
core.v1.ObjectReference: kind namespace name uid apiVersion resourceVersion fieldPath
core.v1.PersistentVolume: metadata spec status
core.v1.PersistentVolumeClaim: metadata spec status
core.v1.PersistentVolumeClaimCondition: type status lastProbeTime lastTransitionTime reason
  message
core.v1.PersistentVolumeClaimSpec: accessModes resources volumeName selector storageClassName*
  volumeMode* dataSource dataSourceRef volumeAttributesClassName*
core.v1.PersistentVolumeClaimStatus: phase accessModes capacity conditions allocatedResources
  7=allocatedResourceStatuses currentVolumeAttributesClassName* modifyVolumeStatus healthStatus
core.v1.PersistentVolumeClaimTemplate: metadata spec
core.v1.PersistentVolumeClaimVolumeSource: claimName readOnly
core.v1.PersistentVolumeSource: gcePersistentDisk awsElasticBlockStore hostPath glusterfs nfs rbd
  iscsi cinder cephfs fc flocker flexVolume azureFile vsphereVolume quobyte azureDisk
  photonPersistentDisk portworxVolume scaleIO local storageos csi
core.v1.PersistentVolumeSpec: capacity +core.v1.PersistentVolumeSource accessModes claimRef
  persistentVolumeReclaimPolicy storageClassName mountOptions volumeMode* nodeAffinity
  volumeAttributesClassName*
core.v1.PersistentVolumeStatus: phase message reason lastPhaseTransitionTime
core.v1.PhotonPersistentDiskVolumeSource: pdID fsType
core.v1.Pod: metadata spec status
core.v1.PodAffinity: requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
core.v1.PodAffinityTerm: labelSelector namespaces topologyKey namespaceSelector matchLabelKeys
  mismatchLabelKeys
core.v1.PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
core.v1.PodCertificateProjection: signerName keyType maxExpirationSeconds* credentialBundlePath
  keyPath certificateChainPath userAnnotations user*
core.v1.PodCondition: type status lastProbeTime lastTransitionTime reason message
  observedGeneration
core.v1.PodDNSConfig: nameservers searches options
core.v1.PodDNSConfigOption: name value*
core.v1.PodExtendedResourceClaimStatus: requestMappings resourceClaimName
core.v1.PodIP: ip
core.v1.PodOS: name
core.v1.PodReadinessGate: conditionType
core.v1.PodResourceClaim: name 3=resourceClaimName* resourceClaimTemplateName*
core.v1.PodResourceClaimStatus: name resourceClaimName*
core.v1.PodSchedulingGate: name
core.v1.PodSchedulingGroup: podGroupName*
core.v1.PodSecurityContext: seLinuxOptions runAsUser* runAsNonRoot* supplementalGroups fsGroup*
  runAsGroup* sysctls windowsOptions fsGroupChangePolicy* seccompProfile appArmorProfile
  supplementalGroupsPolicy* seLinuxChangePolicy*
core.v1.PodSpec: volumes containers restartPolicy terminationGracePeriodSeconds*
  activeDeadlineSeconds* dnsPolicy nodeSelector serviceAccountName serviceAccount nodeName
  hostNetwork hostPID hostIPC securityContext imagePullSecrets hostname subdomain affinity
  schedulerName initContainers automountServiceAccountToken* tolerations hostAliases
  priorityClassName priority* dnsConfig shareProcessNamespace* readinessGates runtimeClassName*
  enableServiceLinks* preemptionPolicy* overhead topologySpreadConstraints ephemeralContainers
  setHostnameAsFQDN* os hostUsers* schedulingGates resourceClaims resources hostnameOverride*
  43=schedulingGroup evictionResponders
core.v1.PodStatus: phase conditions message reason hostIP podIP startTime containerStatuses
  qosClass initContainerStatuses nominatedNodeName podIPs ephemeralContainerStatuses resize
  resourceClaimStatuses hostIPs observedGeneration extendedResourceClaimStatus allocatedResources
  resources nodeAllocatableResourceClaimStatuses volumeHealth
core.v1.PodTemplate: metadata template
core.v1.PodTemplateSpec: metadata spec
core.v1.PodVolumeHealth: name healthConditions lastTransitionTime
core.v1.PortStatus: port protocol error*
core.v1.PortworxVolumeSource: volumeID fsType readOnly
core.v1.PreferredSchedulingTerm: weight preference
core.v1.Probe: +core.v1.ProbeHandler initialDelaySeconds timeoutSeconds periodSeconds
  successThreshold failureThreshold terminationGracePeriodSeconds*
core.v1.ProbeHandler: exec httpGet tcpSocket grpc
core.v1.ProjectedVolumeSource: sources defaultMode* defaultUser*
core.v1.QuobyteVolumeSource: registry volume readOnly user group tenant
core.v1.RBDPersistentVolumeSource: monitors image fsType pool user keyring secretRef readOnly
core.v1.RBDVolumeSource: monitors image fsType pool user keyring secretRef readOnly
core.v1.ReplicationController: metadata spec status
core.v1.ReplicationControllerCondition: type status lastTransitionTime reason message
core.v1.ReplicationControllerSpec: replicas* selector template minReadySeconds
core.v1.ReplicationControllerStatus: replicas fullyLabeledReplicas observedGeneration
  readyReplicas availableReplicas conditions
core.v1.ResourceClaim: name request
core.v1.ResourceFieldSelector: containerName resource divisor
core.v1.ResourceHealth: resourceID health 6=message*
core.v1.ResourceQuota: metadata spec status
core.v1.ResourceQuotaSpec: hard scopes scopeSelector
core.v1.ResourceQuotaStatus: hard used
core.v1.ResourceRequirements: limits requests claims
core.v1.ResourceStatus: name resources
core.v1.SELinuxOptions: user role type level
core.v1.ScaleIOPersistentVolumeSource: gateway system secretRef sslEnabled protectionDomain
  storagePool storageMode volumeName fsType readOnly
core.v1.ScaleIOVolumeSource: gateway system secretRef sslEnabled protectionDomain storagePool
  storageMode volumeName fsType readOnly
core.v1.ScopeSelector: matchExpressions
core.v1.ScopedResourceSelectorRequirement: scopeName operator values
core.v1.SeccompProfile: type localhostProfile*
core.v1.Secret: metadata data type stringData immutable*
core.v1.SecretEnvSource: +core.v1.LocalObjectReference optional*
core.v1.SecretKeySelector: +core.v1.LocalObjectReference key optional*
core.v1.SecretProjection: +core.v1.LocalObjectReference items 4=optional*
core.v1.SecretReference: name namespace
core.v1.SecretVolumeSource: secretName items defaultMode* optional* defaultUser*
core.v1.SecurityContext: capabilities privileged* seLinuxOptions runAsUser* runAsNonRoot*
  readOnlyRootFilesystem* allowPrivilegeEscalation* runAsGroup* procMount* windowsOptions
  seccompProfile appArmorProfile
core.v1.Service: metadata spec status
core.v1.ServiceAccount: metadata secrets imagePullSecrets automountServiceAccountToken*
core.v1.ServiceAccountTokenProjection: audience expirationSeconds* path user*
core.v1.ServicePort: name protocol port targetPort nodePort appProtocol*
core.v1.ServiceSpec: ports selector clusterIP type externalIPs 7=sessionAffinity loadBalancerIP
  loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort
  publishNotReadyAddresses sessionAffinityConfig 17=ipFamilyPolicy* clusterIPs ipFamilies
  allocateLoadBalancerNodePorts* loadBalancerClass* internalTrafficPolicy* trafficDistribution*
core.v1.ServiceStatus: loadBalancer conditions
core.v1.SessionAffinityConfig: clientIP
core.v1.SleepAction: seconds
core.v1.StorageOSPersistentVolumeSource: volumeName volumeNamespace fsType readOnly secretRef
core.v1.StorageOSVolumeSource: volumeName volumeNamespace fsType readOnly secretRef
core.v1.Sysctl: name value
core.v1.TCPSocketAction: port host
core.v1.Taint: key value effect timeAdded
core.v1.Toleration: key operator value effect tolerationSeconds*
core.v1.TopologySelectorLabelRequirement: key values
core.v1.TopologySelectorTerm: matchLabelExpressions
core.v1.TopologySpreadConstraint: maxSkew topologyKey whenUnsatisfiable labelSelector minDomains*
  nodeAffinityPolicy* nodeTaintsPolicy* matchLabelKeys
core.v1.TypedLocalObjectReference: apiGroup* kind name
core.v1.TypedObjectReference: apiGroup* kind name namespace*
core.v1.Volume: name +core.v1.VolumeSource
core.v1.VolumeDevice: name devicePath
core.v1.VolumeHealthCondition: status reason message
core.v1.VolumeHealthStatus: healthConditions lastTransitionTime
core.v1.VolumeMount: name readOnly mountPath subPath mountPropagation* subPathExpr
  recursiveReadOnly* bindMountOptions
core.v1.VolumeMountStatus: name mountPath readOnly recursiveReadOnly* volumeStatus
core.v1.VolumeNodeAffinity: required
core.v1.VolumeProjection: secret downwardAPI configMap serviceAccountToken clusterTrustBundle
  podCertificate
core.v1.VolumeResourceRequirements: limits requests
core.v1.VolumeSource: hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs
  iscsi glusterfs persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc
  azureFile configMap vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO
  projected storageos csi ephemeral image
core.v1.VolumeStatus: image
core.v1.VsphereVirtualDiskVolumeSource: volumePath fsType storagePolicyName storagePolicyID
core.v1.WeightedPodAffinityTerm: weight podAffinityTerm
core.v1.WindowsSecurityContextOptions: gmsaCredentialSpecName* gmsaCredentialSpec* runAsUserName*
  hostProcess*
discovery.v1.Endpoint: addresses conditions hostname* targetRef deprecatedTopology nodeName* zone*
  hints
discovery.v1.EndpointConditions: ready* serving* terminating*
discovery.v1.EndpointHints: forZones forNodes
discovery.v1.EndpointPort: name* protocol* port* appProtocol*
discovery.v1.EndpointSlice: metadata endpoints ports addressType
discovery.v1.ForNode: name
discovery.v1.ForZone: name
events.v1.Event: metadata eventTime series reportingController reportingInstance action reason
  regarding related note type deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp
  deprecatedCount
events.v1.EventSeries: count lastObservedTime
meta.v1.Condition: type status observedGeneration lastTransitionTime reason message
meta.v1.DeleteOptions: gracePeriodSeconds* preconditions orphanDependents* propagationPolicy*
  dryRun ignoreStoreReadErrorWithClusterBreakingPotential*
meta.v1.FieldSelectorRequirement: key operator values
meta.v1.LabelSelector: matchLabels matchExpressions
meta.v1.LabelSelectorRequirement: key operator values
meta.v1.ListMeta: selfLink resourceVersion continue remainingItemCount* shardInfo
meta.v1.ManagedFieldsEntry: manager operation apiVersion time 6=fieldsType fieldsV1 subresource
meta.v1.ObjectMeta: name generateName namespace selfLink uid resourceVersion generation
  creationTimestamp deletionTimestamp deletionGracePeriodSeconds* labels annotations
  ownerReferences finalizers 17=managedFields
meta.v1.OwnerReference: kind 3=name uid apiVersion controller* blockOwnerDeletion*
meta.v1.Preconditions: uid* resourceVersion*
meta.v1.ShardInfo: selector
meta.v1.Status: metadata status message reason details code
meta.v1.StatusCause: reason message field
meta.v1.StatusDetails: name group kind causes retryAfterSeconds uid
networking.v1.IPBlock: cidr except
networking.v1.NetworkPolicy: metadata spec
networking.v1.NetworkPolicyEgressRule: ports to
networking.v1.NetworkPolicyIngressRule: ports from
networking.v1.NetworkPolicyPeer: podSelector namespaceSelector ipBlock
networking.v1.NetworkPolicyPort: protocol* port endPort*
networking.v1.NetworkPolicySpec: podSelector ingress egress policyTypes
node.v1.Overhead: podFixed
node.v1.RuntimeClass: metadata handler overhead scheduling
node.v1.Scheduling: nodeSelector tolerations
policy.v1.Eviction: metadata deleteOptions
policy.v1.PodDisruptionBudget: metadata spec status
policy.v1.PodDisruptionBudgetSpec: minAvailable selector maxUnavailable
  unhealthyPodEvictionPolicy*
policy.v1.PodDisruptionBudgetStatus: observedGeneration disruptedPods disruptionsAllowed
  currentHealthy desiredHealthy expectedPods conditions
rbac.v1.AggregationRule: clusterRoleSelectors
rbac.v1.ClusterRole: metadata rules aggregationRule
rbac.v1.ClusterRoleBinding: metadata subjects roleRef
rbac.v1.PolicyRule: verbs apiGroups resources resourceNames nonResourceURLs
rbac.v1.Role: metadata rules
rbac.v1.RoleBinding: metadata subjects roleRef
rbac.v1.RoleRef: apiGroup kind name
rbac.v1.Subject: kind apiGroup name namespace
scheduling.v1.PriorityClass: metadata value globalDefault description preemptionPolicy*
storage.v1.StorageClass: metadata provisioner parameters reclaimPolicy* mountOptions
  allowVolumeExpansion* volumeBindingMode* allowedTopologies
"""
