"""Paths that a real cluster serves and this one does not, so that refusals can name them.

Not a list of all there is in Kubernetes: the kinds and subresources that people, kubectl and
controllers ask for.
"""

from __future__ import annotations

from mcad.sim.failures import Failure

SUBRESOURCES = {
    "pods": (
        "attach",
        "binding",
        "ephemeralcontainers",
        "eviction",
        "exec",
        "portforward",
        "proxy",
        "resize",
    ),
    "nodes": ("proxy",),
    "services": ("proxy",),
    "serviceaccounts": ("token",),
}
_KINDS = {
    "": ("bindings", "componentstatuses"),
    "admissionregistration.k8s.io": (
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
    "apiregistration.k8s.io": ("apiservices",),
    "apps": ("controllerrevisions",),
    "authentication.k8s.io": ("selfsubjectreviews", "tokenreviews"),
    "authorization.k8s.io": (
        "localsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
    ),
    "autoscaling": ("horizontalpodautoscalers",),
    "certificates.k8s.io": ("certificatesigningrequests",),
    "networking.k8s.io": ("ingressclasses", "ingresses"),
    "resource.k8s.io": ("deviceclasses", "resourceclaims", "resourceclaimtemplates"),
    "storage.k8s.io": ("csidrivers", "csinodes", "csistoragecapacities", "volumeattachments"),
}


def refusal(path: str) -> Failure | None:
    """The 404 for a path of something that is known not to be here; None if it is not known."""
    group, rest = _split(path)
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    resource, part = (rest[0] if rest else ""), (rest[2] if len(rest) > 2 else "")
    if resource in _KINDS.get(group, ()):
        name = f"{resource}.{group}" if group else resource
    elif not group and part in SUBRESOURCES.get(resource, ()):
        name = f"{resource}/{part}"
    else:
        return None
    message = f"the embedded cluster has no {name}; a real cluster has it"
    return Failure(404, "NotFound", message, {"kind": resource})


def _split(path: str) -> tuple[str, list[str]]:
    """The group, and what comes behind the version."""
    parts = path.strip("/").split("/")
    if parts[0] == "apis":
        return "".join(parts[1:2]), parts[3:]
    return "", parts[2:]
