{{/* Where nothing is wrapped: what the values name, and where the dispatcher itself lives. */}}
{{- define "mcad.excludedNamespaces" -}}
{{- append .Values.excludedNamespaces .Release.Namespace | uniq | sortAlpha | toYaml -}}
{{- end -}}

{{/* The dispatcher's whole configuration: `config`, and what the chart needs to know as well. */}}
{{- define "mcad.config" -}}
{{- $wrapped := list -}}
{{- range .Values.wrappedResources -}}
{{- $group := dict "apiGroup" .apiGroup "resources" (keys .resources | sortAlpha) -}}
{{- if .dangerous }}{{ $_ := set $group "dangerous" true }}{{ end -}}
{{- $wrapped = append $wrapped $group -}}
{{- end -}}
{{- $ours := dict "wrappedResources" $wrapped "watchNamespaces" .Values.watchNamespaces -}}
{{- $_ := set $ours "excludedNamespaces" (include "mcad.excludedNamespaces" . | fromYamlArray) -}}
{{- if eq .Values.authorization "impersonate" -}}
{{- $_ := set $ours "impersonate" (dict "serviceAccount" .Values.impersonate.serviceAccount) -}}
{{- end -}}
{{- merge $ours .Values.config | toYaml -}}
{{- end -}}
