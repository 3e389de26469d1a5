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

{{/* What the page reads where AppWrappers are. */}}
{{- define "mcad.uiNamespacedRules" -}}
- apiGroups: [workload.codeflare.dev]
  resources: [appwrappers]
  verbs: [get, list]
{{- if .Values.config.quotaEnabled }}
- apiGroups: [quota.codeflare.dev]
  resources: [quotasubtrees]
  verbs: [list]
{{- end }}
- apiGroups: [""]
  resources: [events]
  verbs: [list]
{{- end -}}
