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

{{/* The Secret and the rights of metrics over TLS. */}}
{{- define "mcad.metrics" -}}
{{- printf "%s-metrics" (include "mcad.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{/*
A certificate in base64; a list of the root, the name of its Secret and of the Service. That of the
release is kept while it is there; without a cluster to ask (helm template) each rendering has
another one.
*/}}
{{- define "mcad.certificate" -}}
{{- $namespace := (index . 0).Release.Namespace -}}
{{- $name := index . 1 -}}
{{- $found := lookup "v1" "Secret" $namespace $name | default dict -}}
{{- $data := get $found "data" | default dict -}}
{{- if hasKey $data "ca.crt" -}}
{{- dict "ca" (get $data "ca.crt") "cert" (get $data "tls.crt") "key" (get $data "tls.key") | toYaml -}}
{{- else -}}
{{- $host := printf "%s.%s.svc" (index . 2) $namespace -}}
{{- $ca := genCA (printf "%s-ca" $name) 3650 -}}
{{- $cert := genSignedCert $host nil (list $host) 3650 $ca -}}
{{- dict "ca" (b64enc $ca.Cert) "cert" (b64enc $cert.Cert) "key" (b64enc $cert.Key) | toYaml -}}
{{- end -}}
{{- end -}}

{{/* How a monitor reaches metrics over TLS; a list of the root and the values of the monitor. */}}
{{- define "mcad.tlsConfig" -}}
{{- $root := index . 0 -}}
{{- with (index . 1).tlsConfig -}}
{{- toYaml . -}}
{{- else -}}
{{- if not (has (index . 1).namespace (list "" $root.Release.Namespace)) -}}
{{- fail "a monitor in another namespace than the release cannot name the CA of metrics.secure, which is in a Secret here: set tlsConfig of the monitor." -}}
{{- end -}}
ca:
  secret:
    name: {{ default (include "mcad.metrics" $root) $root.Values.metrics.secure.secretName }}
    key: ca.crt
serverName: {{ include "mcad.fullname" $root }}.{{ $root.Release.Namespace }}.svc
{{- end -}}
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

{{/* Labels of what `helm test` runs: not those by which pods of the dispatcher are selected. */}}
{{- define "mcad.testLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 58 | trimSuffix "-" }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: test
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Only there while `helm test` runs; the argument is the place in its order. */}}
{{- define "mcad.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
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

{{/* Kinds without pods, as group/Kind, as mcad/api/wrapped_kinds.py has them; a test compares. */}}
{{- define "mcad.withoutPods" -}}
'/ConfigMap', '/Endpoints', '/LimitRange', '/PersistentVolumeClaim', '/PodTemplate',
'/ResourceQuota', '/Secret', '/ServiceAccount', '/Service', 'autoscaling/HorizontalPodAutoscaler',
'discovery.k8s.io/EndpointSlice', 'gateway.networking.k8s.io/HTTPRoute', 'networking.k8s.io/Ingress', 'networking.k8s.io/NetworkPolicy',
'policy/PodDisruptionBudget', 'rbac.authorization.k8s.io/RoleBinding',
'rbac.authorization.k8s.io/Role', 'scheduling.k8s.io/PodGroup', 'scheduling.k8s.io/Workload',
'scheduling.sigs.k8s.io/PodGroup', 'scheduling.x-k8s.io/PodGroup'
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

{{/* CEL: the pods of a Job that run at the same time; the argument is its spec, an optional. */}}
{{- define "mcad.jobPods" -}}
[{{ . }}.?parallelism.orValue(1), {{ . }}.?completions.orValue(2147483647)].min()
{{- end -}}

{{/* CEL: an amount as an optional; a list of what has requests and limits, and the resource. */}}
{{- define "mcad.amount" -}}
{{- $requests := printf "%s.?requests[?'%s']" (index . 0) (index . 1) -}}
{{- $limits := printf "%s.?limits[?'%s']" (index . 0) (index . 1) -}}
{{ $requests }}.or({{ $limits }}).optMap(q, quantity(string(dyn(q))).asApproximateFloat())
{{- end -}}
