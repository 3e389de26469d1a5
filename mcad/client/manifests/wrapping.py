"""Makes an AppWrapper of manifests of any kind, such as those of Helm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from mcad.api.appwrapper import parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.api.labels import GROUP, KIND
from mcad.api.wire import as_map, as_text, plural
from mcad.client.errors import InvalidError, McadError, warn
from mcad.client.manifests.documents import Document
from mcad.client.manifests.exported import as_written
from mcad.client.manifests.ownership import without_owned
from mcad.core.state.waiting_reason import WaitingReason

Json = dict[str, Any]

HOOK = "helm.sh/hook"

_CLUSTER_SCOPED = {
    "": ("Namespace", "Node", "PersistentVolume"),
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    ),
    "apiextensions.k8s.io": ("CustomResourceDefinition",),
    "apiregistration.k8s.io": ("APIService",),
    "certificates.k8s.io": ("CertificateSigningRequest", "ClusterTrustBundle"),
    "networking.k8s.io": ("IngressClass", "IPAddress", "ServiceCIDR"),
    "node.k8s.io": ("RuntimeClass",),
    "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding"),
    "resource.k8s.io": ("DeviceClass", "ResourceSlice"),
    "scheduling.k8s.io": ("PriorityClass",),
    "storage.k8s.io": ("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"),
}
"""Kinds of Kubernetes without a namespace, by API group (Kubernetes API reference, v1.34)."""


WITH_RIGHTS = {
    "": ("ServiceAccount",),
    "rbac.authorization.k8s.io": ("Role", "RoleBinding"),
}
"""Kinds with a namespace that charts bundle and that carry rights, by API group."""


class Wrapping(Struct, frozen=True):
    """What the AppWrapper says besides its items.

    ``leaves``: (quota tree, leaf) that it is charged to. ``dialect``: v1beta2, or MCAD's v1beta1.
    ``without_rights``: kinds that carry rights are left out.
    """

    name: str = ""
    priority: int | None = None
    leaves: tuple[tuple[str, str], ...] = ()
    dialect: str = "v1beta2"
    without_rights: bool = False


def wrapped(documents: Sequence[Document], namespace: str | None, wrapping: Wrapping) -> Json:
    """The AppWrapper; raises ``McadError`` if an object cannot be an item of it."""
    kept = [one for one in without_owned(documents) if _is_kept(one, wrapping)]
    if not kept:
        raise McadError("nothing is left to wrap; name files with namespaced objects")
    metadata: Json = {"name": wrapping.name}
    namespace = _namespace(kept, namespace)
    if namespace:
        metadata["namespace"] = namespace
    if wrapping.leaves:
        metadata["labels"] = dict(wrapping.leaves)
    spec: Json = {} if wrapping.priority is None else {"priority": wrapping.priority}
    spec |= _items([as_written(one.content) for one in kept], wrapping.dialect)
    obj = {
        "apiVersion": f"{GROUP}/{wrapping.dialect}",
        "kind": KIND,
        "metadata": metadata,
        "spec": spec,
    }
    _check(obj, kept)
    return obj


def _items(objects: Iterable[Json], dialect: str) -> Json:
    if dialect == "v1beta1":
        return {"resources": {"GenericItems": [{"generictemplate": one} for one in objects]}}
    return {"components": [{"template": one} for one in objects]}


def _is_kept(document: Document, wrapping: Wrapping) -> bool:
    """Whether the object becomes an item; if not, a warning says why."""
    obj = document.content
    kind, metadata = as_text(obj.get("kind")), as_map(obj.get("metadata"))
    title = f"{document.origin}: {kind or 'an object'} {as_text(metadata.get('name'))}".rstrip()
    if kind == KIND:
        raise McadError(f"{title} is an AppWrapper already; submit it with `mcad submit`")
    if HOOK in as_map(metadata.get("annotations")):
        warn(f"{title} is left out: Helm runs it as a hook, which an AppWrapper has none of")
        return False
    group = as_text(obj.get("apiVersion")).rpartition("/")[0]
    if kind in _CLUSTER_SCOPED.get(group, ()):
        warn(f"{title} is left out: it is cluster-scoped; apply it before, with kubectl")
        return False
    if kind in WITH_RIGHTS.get(group, ()):
        if wrapping.without_rights:
            warn(f"{title} is left out: apply it before, with kubectl")
            return False
        warn(
            f"{title} carries rights: the dispatcher holds it unless its setting wrappedResources "
            "names the kind; --without-rights leaves it out"
        )
    return True


def _namespace(kept: Iterable[Document], chosen: str | None) -> str:
    """The namespace of the AppWrapper and of all of its items, "" if none names one."""
    found = chosen or ""
    for document in kept:
        own = as_text(as_map(document.content.get("metadata")).get("namespace"))
        if own and found and own != found:
            raise McadError(
                f"{document.origin}: is for namespace {own}, not {found}; all objects have "
                "the namespace of their AppWrapper: change one of them, or wrap them separately"
            )
        found = found or own
    return found


def _check(obj: Json, kept: Sequence[Document]) -> None:
    """Faults of the items end the command. Which kinds the cluster has, only `mcad submit` asks."""
    read = {**obj, "metadata": {"namespace": "default", **obj["metadata"]}}
    parsed = parse(read, catalog_of(Config(), WELL_KNOWN))
    where = ", ".join(dict.fromkeys(one.origin.partition(", document")[0] for one in kept))
    faults = [f"{where}: {one}" for one in parsed.problems if one.kind is WaitingReason.INVALID]
    if faults:
        count = plural(len(faults), "fault")
        raise InvalidError(f"nothing was wrapped: {count} to correct first", tuple(faults))
    for text in parsed.workload.warnings:
        warn(f"{where}: {text}")
