{{/*
What stands between a wrapped object and its pods, read to find whose a pod is. As
mcad/api/rbac.py has it; a test compares.
*/}}
{{- define "mcad.ownedThrough" -}}
apps/deployments: [apps/replicasets]
batch/cronjobs: [batch/jobs]
jobset.x-k8s.io/jobsets: [batch/jobs]
kubeflow.org/mpijobs: [batch/jobs]
kubeflow.org/notebooks: [apps/statefulsets]
leaderworkerset.x-k8s.io/leaderworkersets: [apps/statefulsets]
ray.io/rayjobs: [ray.io/rayclusters, batch/jobs]
ray.io/rayservices: [ray.io/rayclusters]
serving.kserve.io/inferenceservices: [apps/deployments, apps/replicasets]
trainer.kubeflow.org/trainjobs: [jobset.x-k8s.io/jobsets, batch/jobs]
{{- end -}}

{{/* How an autoscaler is asked for nodes; "" is not at all. YAML reads the word off as false. */}}
{{- define "mcad.scaleUpVia" -}}
{{- $via := (.Values.config.scaleUp | default dict).via | default "off" -}}
{{- if ne (toString $via) "off" }}{{ $via }}{{ end -}}
{{- end -}}

{{/* Rules for every namespace with AppWrappers. */}}
{{- define "mcad.namespacedRules" -}}
{{- $impersonate := eq .Values.authorization "impersonate" -}}
- apiGroups: [workload.codeflare.dev]
  resources: [appwrappers]
  verbs: [get, list, watch, patch]
- apiGroups: [workload.codeflare.dev]
  resources: [appwrappers/status]
  verbs: [patch, update]
{{- if .Values.config.quotaEnabled }}
- apiGroups: [quota.codeflare.dev]
  resources: [quotasubtrees]
  verbs: [list, watch]
- apiGroups: [quota.codeflare.dev]
  resources: [quotasubtrees/status]
  verbs: [patch, update]
{{- end }}
{{- if $impersonate }}
# Items are created as this account only.
- apiGroups: [""]
  resources: [serviceaccounts]
  resourceNames: [{{ .Values.impersonate.serviceAccount }}]
  verbs: [impersonate]
{{- else }}
# OwnerReferencesPermissionEnforcement requires it for objects with blockOwnerDeletion.
- apiGroups: [workload.codeflare.dev]
  resources: [appwrappers/finalizers]
  verbs: [update]
{{- end }}
{{- $table := include "mcad.ownedThrough" . | fromYaml }}
{{- $listed := dict }}
{{- $between := dict }}
{{- range $group := .Values.wrappedResources }}
{{- range $plural, $kind := .resources }}
{{- $pair := printf "%s/%s" $group.apiGroup $plural }}
{{- $_ := set $listed $pair true }}
{{- range index $table $pair }}
{{- $_ := set $between . true }}
{{- end }}
{{- end }}
- apiGroups: [{{ .apiGroup | quote }}]
  resources:
    {{- range keys .resources | sortAlpha }}
    - {{ . }}
    {{- end }}
  verbs: [{{ if not $impersonate }}create, {{ end }}delete, get, list, watch]
{{- end }}
{{- if not (hasKey $listed "/pods") }}
# By force, if they do not terminate.
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
{{- end }}
{{- range keys $between | sortAlpha }}
{{- if not (hasKey $listed .) }}
- apiGroups: [{{ regexReplaceAll "/.*" . "" | quote }}]
  resources: [{{ regexReplaceAll ".*/" . "" }}]
  verbs: [get]
{{- end }}
{{- end }}
{{- $via := include "mcad.scaleUpVia" . }}
{{- if eq $via "PlaceholderPods" }}
# Pods that keep the places of others while nodes are added.
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete, get, list]
{{- else if $via }}
# Requests for nodes, and the pods that they are for.
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [create, delete, get, list]
- apiGroups: [autoscaling.x-k8s.io]
  resources:
    {{- if ne $via "ProvisioningRequest" }}
    - capacitybuffers
    {{- end }}
    {{- if ne $via "CapacityBuffer" }}
    - provisioningrequests
    {{- end }}
  verbs: [create, delete, get, list, watch]
{{- end }}
# Default requests of containers.
- apiGroups: [""]
  resources: [limitranges]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
# Why pods of an item are not created.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
{{- end -}}

{{/* Rules for the whole cluster: its capacity, and the checks before the start. */}}
{{- define "mcad.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes, pods]
  verbs: [list, watch]
- apiGroups: [workload.codeflare.dev]
  resources: [dispatchpauses]
  verbs: [list, watch]
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: [list, watch]
# priorities, and preemptionPolicy: Never
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [list, watch]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloadpriorityclasses]
  verbs: [list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [appwrappers.workload.codeflare.dev{{ if .Values.config.quotaEnabled }}, quotasubtrees.quota.codeflare.dev{{ end }}]
  verbs: [get]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  verbs: [list]
- apiGroups: [authorization.k8s.io]
  resources: [selfsubjectaccessreviews]
  verbs: [create]
{{- end -}}

{{- define "mcad.subjects" -}}
- kind: ServiceAccount
  name: {{ include "mcad.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
