{{/*
Kinds that carry rights or change what the API server does; [] means all of the group. As
mcad/api/config.py has it; a test compares.
*/}}
{{- define "mcad.dangerous" -}}
"": [namespaces, nodes, persistentvolumes, serviceaccounts]
admissionregistration.k8s.io: []
apiextensions.k8s.io: []
apiregistration.k8s.io: []
authentication.k8s.io: []
certificates.k8s.io: []
rbac.authorization.k8s.io: []
{{- end -}}

{{/* Removed settings, and what to do, as mcad/api/removed_settings.py has it; a test compares. */}}
{{- define "mcad.removed" -}}
bindingWait: "remove it: a gang that fits waits for the bindings of others for 5 s at most"
podCountsInterval: "remove it: pod counts in status are 30 s old at most"
potentialCapacity: "remove it: only room of nodes that exist is counted"
resourcesWithoutPods: "remove it: the kinds without pods are fixed"
warmStandby: "remove it: a standby always holds a copy, and needs as much memory as a leader"
faultTolerance.retryLimitCeiling: "remove it: a ValidatingAdmissionPolicy can bound the annotation retryLimit"
{{- end -}}

{{/* Whether v1beta1 may be left out: nothing is stored as such, and what was written as such has ended. */}}
{{- define "mcad.dialects" -}}
{{- if not (has "v1beta2" .Values.dialects) -}}
{{- fail "dialects: v1beta2 cannot be left out: the dispatcher reads and writes it, and items name it in their owner references. Set dialects to [v1beta2] or to [v1beta1, v1beta2]." -}}
{{- end -}}
{{- if not (has "v1beta1" .Values.dialects) -}}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "appwrappers.workload.codeflare.dev" | default dict -}}
{{- $isServed := false -}}
{{- range dig "spec" "versions" list $crd -}}
{{- if and (eq .name "v1beta1") .served }}{{ $isServed = true }}{{ end -}}
{{- end -}}
{{- if has "v1beta1" (dig "status" "storedVersions" list $crd) -}}
{{- fail "dialects: v1beta1 cannot be left out yet: AppWrappers may be stored as v1beta1. Run mcad migrate storage, which writes each once." -}}
{{- end -}}
{{- if $isServed -}}
{{- $need := list -}}
{{- range (lookup "workload.codeflare.dev/v1beta2" "AppWrapper" "" "").items -}}
{{- $one := . -}}
{{- $wrote := false -}}
{{- range $one.metadata.managedFields }}{{ if eq .apiVersion "workload.codeflare.dev/v1beta1" }}{{ $wrote = true }}{{ end }}{{ end -}}
{{- if and $wrote (not (has (dig "status" "state" "" $one) (list "Completed" "Failed" "Deleted"))) -}}
{{- $need = append $need (printf "%s/%s" $one.metadata.namespace $one.metadata.name) -}}
{{- end -}}
{{- end -}}
{{- if $need -}}
{{- fail (printf "dialects: v1beta1 cannot be left out yet: AppWrappers that were written as v1beta1 have not ended (%d, %s for example). Wait for their ends, or delete them." (len $need) (first $need)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Checks beyond the schema: values that contradict each other, or do not fit this cluster. */}}
{{- define "mcad.checks" -}}
{{- $removed := include "mcad.removed" . | fromYaml -}}
{{- range $name, $value := .Values.config -}}
{{- $names := list $name -}}
{{- if kindIs "map" $value -}}
{{- range keys $value | sortAlpha }}{{ $names = append $names (printf "%s.%s" $name .) }}{{ end -}}
{{- end -}}
{{- range $names -}}
{{- if hasKey $removed . -}}
{{- fail (printf "config.%s is no longer a setting; %s." . (get $removed .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "mcad.dialects" . -}}
{{- if eq .Values.authorization "policy" -}}
{{- if semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "authorization: policy needs Kubernetes 1.30 or later, and this is %s: it has no ValidatingAdmissionPolicy. Set authorization to impersonate, or to none if all users with the right to create AppWrappers may create all of wrappedResources." .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.authorization "impersonate" -}}
{{- if not .Values.impersonate.serviceAccount -}}
{{- fail "authorization: impersonate needs impersonate.serviceAccount: the name of the account that creates items, the same in each of watchNamespaces." -}}
{{- end -}}
{{- if not .Values.watchNamespaces -}}
{{- fail "authorization: impersonate needs watchNamespaces: the right to impersonate is granted in each of them, never cluster-wide." -}}
{{- end -}}
{{- else if .Values.impersonate.serviceAccount -}}
{{- fail (printf "impersonate.serviceAccount has no effect with authorization: %s. Set authorization: impersonate, or remove it." .Values.authorization) -}}
{{- end -}}
{{- $excluded := include "mcad.excludedNamespaces" . | fromYamlArray -}}
{{- range .Values.watchNamespaces -}}
{{- if has . $excluded -}}
{{- fail (printf "watchNamespaces: nothing is wrapped in %s, which is in excludedNamespaces or the namespace of this release; remove it from one of them." .) -}}
{{- end -}}
{{- end -}}
{{- $dangerous := include "mcad.dangerous" . | fromYaml -}}
{{- range $group := .Values.wrappedResources -}}
{{- range $plural, $kind := .resources -}}
{{- if and (hasKey $dangerous $group.apiGroup) (not $group.dangerous) -}}
{{- $kinds := index $dangerous $group.apiGroup -}}
{{- if or (not $kinds) (has $plural $kinds) -}}
{{- fail (printf "wrappedResources: %s of the API group %q carries rights: users can gain rights by wrapping it. Remove it, or set dangerous: true in that group." $plural $group.apiGroup) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $seen := dict -}}
{{- range $group := .Values.wrappedResources -}}
{{- range $plural, $kind := .resources -}}
{{- if eq $plural "appwrappers" -}}
{{- fail "wrappedResources: an AppWrapper cannot wrap another one; remove appwrappers." -}}
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
