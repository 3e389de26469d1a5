{{/* What a schema cannot say: values that do not go together, or not with this cluster. */}}
{{- define "mcad.checks" -}}
{{- if eq .Values.authorization "policy" -}}
{{- if semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "authorization: policy needs Kubernetes 1.30 or later, and this is %s: it has no ValidatingAdmissionPolicy. Set authorization to impersonate, or to none if everybody who may create AppWrappers may create all of wrappedResources." .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.authorization "impersonate" -}}
{{- if not .Values.impersonate.serviceAccount -}}
{{- fail "authorization: impersonate needs impersonate.serviceAccount: the name of the account, the same in each of watchNamespaces, as which items are created." -}}
{{- end -}}
{{- if not .Values.watchNamespaces -}}
{{- fail "authorization: impersonate needs watchNamespaces: the right to impersonate is granted in each of them, never cluster-wide." -}}
{{- end -}}
{{- else if .Values.impersonate.serviceAccount -}}
{{- fail (printf "impersonate.serviceAccount has no effect with authorization: %s. Set authorization: impersonate, or take it out." .Values.authorization) -}}
{{- end -}}
{{- $seen := dict -}}
{{- range $group := .Values.wrappedResources -}}
{{- range $plural, $kind := .resources -}}
{{- if eq $plural "appwrappers" -}}
{{- fail "wrappedResources: an AppWrapper cannot wrap another one; take appwrappers out." -}}
{{- end -}}
{{- $plain := printf "%s/%s" $group.apiGroup $kind -}}
{{- $before := get $seen $plain -}}
{{- if and $before (ne $before $plural) -}}
{{- fail (printf "wrappedResources: %s and %s of the API group %q are both called %s; each kind has one plural." $before $plural $group.apiGroup $kind) -}}
{{- end -}}
{{- $_ := set $seen $plain $plural -}}
{{- end -}}
{{- end -}}
{{- end -}}
