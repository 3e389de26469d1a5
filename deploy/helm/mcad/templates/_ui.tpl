{{/* The objects of the page. */}}
{{- define "mcad.ui" -}}
{{- printf "%s-ui" (include "mcad.fullname" . | trunc 60 | trimSuffix "-") -}}
{{- end -}}

{{/* Not those by which pods of the dispatcher are selected. */}}
{{- define "mcad.uiSelectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 60 | trimSuffix "-" }}-ui
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mcad.uiLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "mcad.uiSelectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: ui
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What the page reads where AppWrappers are. Wrapped Secrets and ConfigMaps are not among it. */}}
{{- define "mcad.uiNamespacedRules" -}}
- apiGroups: [workload.codeflare.dev]
  resources: [appwrappers]
  verbs: [get, list, watch]
{{- if .Values.config.quotaEnabled }}
- apiGroups: [quota.codeflare.dev]
  resources: [quotasubtrees]
  verbs: [list, watch]
{{- end }}
- apiGroups: [""]
  resources: [limitranges, events]
  verbs: [list]
{{- $table := include "mcad.ownedThrough" . | fromYaml }}
{{- $listed := dict "/pods" true "/secrets" true "/configmaps" true }}
{{- $between := dict }}
{{- range $group := .Values.wrappedResources }}
{{- $plurals := list }}
{{- range $plural := keys .resources | sortAlpha }}
{{- $pair := printf "%s/%s" $group.apiGroup $plural }}
{{- if not (has $pair (list "/pods" "/secrets" "/configmaps")) }}
{{- $plurals = append $plurals $plural }}
{{- $_ := set $listed $pair true }}
{{- end }}
{{- range index $table $pair }}
{{- $_ := set $between . true }}
{{- end }}
{{- end }}
{{- with $plurals }}
- apiGroups: [{{ $group.apiGroup | quote }}]
  resources: [{{ join ", " . }}]
  verbs: [get, list, watch]
{{- end }}
{{- end }}
{{- range keys $between | sortAlpha }}
{{- if not (hasKey $listed .) }}
- apiGroups: [{{ regexReplaceAll "/.*" . "" | quote }}]
  resources: [{{ regexReplaceAll ".*/" . "" }}]
  verbs: [get]
{{- end }}
{{- end }}
{{- end -}}
