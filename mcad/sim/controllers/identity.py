"""Who the pods of a StatefulSet are: ordinals, names, labels, claims.

After ``pkg/controller/statefulset/stateful_set_utils.go``.
"""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.pods import from_template, labels_of, phase_of, reference_to

Json = dict[str, Any]

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"


def ordinal_of(pod: Json) -> int:
    """The number at the end of its name; -1 if there is none."""
    _, _, number = pod["metadata"]["name"].rpartition("-")
    return int(number) if number.isdecimal() else -1


def is_member(owner: Json, pod: Json) -> bool:
    """Whether the name of the pod is one that this StatefulSet gives."""
    parent, _, number = pod["metadata"]["name"].rpartition("-")
    return bool(parent == owner["metadata"]["name"]) and number.isdecimal()


def ordinals(owner: Json) -> range:
    """Those that the pods are to have."""
    start: int = (owner["spec"].get("ordinals") or {}).get("start", 0)
    return range(start, start + owner["spec"].get("replicas", 1))


def exists(pod: Json) -> bool:
    """Whether it is one of the store, not one that is still to be made."""
    return bool(phase_of(pod))


def revision_of(pod: Json) -> str:
    """The name of the revision that it was made from."""
    return labels_of(pod).get(REVISION_LABEL, "")


def new_pod(owner: Json, template: Json, revision: str, ordinal: int) -> Json:
    """A pod to be created, without a phase."""
    pod = from_template(template, owner)
    name = f"{owner['metadata']['name']}-{ordinal}"
    metadata = pod["metadata"] | {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": labels_of(pod)
        | {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal), REVISION_LABEL: revision},
    }
    spec = pod["spec"] | {"hostname": name}
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    volumes = [
        {
            "name": claim["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(owner, claim, ordinal)},
        }
        for claim in owner["spec"].get("volumeClaimTemplates") or ()
    ]
    named = {volume["name"] for volume in volumes}
    volumes += [one for one in spec.get("volumes") or () if one["name"] not in named]
    if volumes:
        spec["volumes"] = volumes
    return {"metadata": metadata, "spec": spec}


def claim_name(owner: Json, template: Json, ordinal: int) -> str:
    """The name of a pod's own claim."""
    return f"{template['metadata']['name']}-{owner['metadata']['name']}-{ordinal}"


def new_claims(owner: Json, ordinal: int) -> list[Json]:
    """The claims of one pod, to be created if they are missing."""
    pairs = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
    return [
        {
            "metadata": template["metadata"]
            | {"name": claim_name(owner, template, ordinal), "labels": labels_of(template) | pairs},
            "spec": template.get("spec") or {},
        }
        for template in owner["spec"].get("volumeClaimTemplates") or ()
    ]


def claim_owners(owner: Json, pod: Json, claim: Json) -> list[Json]:
    """Owner references that a claim is to have by the retention policy (KEP-1847)."""
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    present = claim["metadata"].get("ownerReferences") or []
    ours = {("StatefulSet", owner["metadata"]["name"]), ("Pod", pod["metadata"]["name"])}
    kept = [one for one in present if (one["kind"], one["name"]) not in ours]
    if any(one.get("controller") for one in kept):
        return kept
    with_set = policy.get("whenDeleted") == "Delete"
    with_pod = policy.get("whenScaled") == "Delete" and ordinal_of(pod) not in ordinals(owner)
    if with_pod and exists(pod):
        return [*kept, reference_to({"apiVersion": "v1", "kind": "Pod"} | pod)]
    return [*kept, *([reference_to(owner)] if with_set else ())]
