{{/* The dispatcher's whole configuration: `config`, and what the chart needs to know as well. */}}
{{- define "mcad.config" -}}
{{- $wrapped := list -}}
{{- range .Values.wrappedResources -}}
{{- $wrapped = append $wrapped (dict "apiGroup" .apiGroup "resources" (keys .resources | sortAlpha)) -}}
{{- end -}}
{{- $ours := dict "wrappedResources" $wrapped "watchNamespaces" .Values.watchNamespaces -}}
{{- if eq .Values.authorization "impersonate" -}}
{{- $_ := set $ours "impersonate" (dict "serviceAccount" .Values.impersonate.serviceAccount) -}}
{{- end -}}
{{- merge $ours .Values.config | toYaml -}}
{{- end -}}
