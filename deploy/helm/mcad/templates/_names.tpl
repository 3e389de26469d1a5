{{/* Name of the objects. */}}
{{- define "mcad.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The visibility API's Secret, Service and rights; a Service's name has 63 characters. */}}
{{- define "mcad.visibility" -}}
{{- printf "%s-visibility" (include "mcad.fullname" . | trunc 52 | trimSuffix "-") -}}
{{- end -}}

{{/*
Its certificate in base64. That of the release is kept while it is there; without a cluster to ask
(helm template) each rendering has another one.
*/}}
{{- define "mcad.visibilityTls" -}}
{{- $name := include "mcad.visibility" . -}}
{{- $found := lookup "v1" "Secret" .Release.Namespace $name | default dict -}}
{{- $data := get $found "data" | default dict -}}
{{- $tls := dict "ca" .Values.visibility.caBundle -}}
{{- if not .Values.visibility.secretName -}}
{{- if hasKey $data "ca.crt" -}}
{{- $tls = dict "ca" (get $data "ca.crt") "cert" (get $data "tls.crt") "key" (get $data "tls.key") -}}
{{- else -}}
{{- $host := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- $ca := genCA (printf "%s-ca" $name) 3650 -}}
{{- $cert := genSignedCert $host nil (list $host) 3650 $ca -}}
{{- $tls = dict "ca" (b64enc $ca.Cert) "cert" (b64enc $cert.Cert) "key" (b64enc $cert.Key) -}}
{{- end -}}
{{- end -}}
{{- toYaml $tls -}}
{{- end -}}

{{- define "mcad.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mcad.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "mcad.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: dispatcher
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "mcad.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "mcad.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.create is false: name an existing account in serviceAccount.name" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "mcad.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The paths of pod sets, as mcad/api/templates.py reads them; a test compares. */}}
{{- define "mcad.setPath" -}}
^template(\.[^.\[\]]+|\[[0-9]{1,6}\])*$
{{- end -}}

{{/* Kinds without pods, as group/Kind: resourcesWithoutPods by default; a test compares. */}}
{{- define "mcad.withoutPods" -}}
'/ConfigMap', '/Endpoints', '/LimitRange', '/PersistentVolumeClaim', '/PodTemplate',
'/ResourceQuota', '/Secret', '/ServiceAccount', '/Service', 'autoscaling/HorizontalPodAutoscaler',
'discovery.k8s.io/EndpointSlice', 'networking.k8s.io/Ingress', 'networking.k8s.io/NetworkPolicy',
'policy/PodDisruptionBudget', 'rbac.authorization.k8s.io/RoleBinding',
'rbac.authorization.k8s.io/Role', 'scheduling.sigs.k8s.io/PodGroup',
'scheduling.x-k8s.io/PodGroup'
{{- end -}}

{{/* Where the runbook of an alert is; a list of the root and the name of the page. */}}
{{- define "mcad.runbook" -}}
{{- $base := (index . 0).Values.prometheusRule.runbookUrl -}}
{{- if $base -}}
runbook_url: {{ printf "%s/%s.md" (trimSuffix "/" $base) (index . 1) | quote }}
{{- else -}}
runbook: docs/operate/runbooks/{{ index . 1 }}.md
{{- end -}}
{{- end }}
