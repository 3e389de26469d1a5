"""``mcad wrap``: makes an AppWrapper of manifests of any kind, such as those of Helm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
from msgspec import Struct

from mcad.api.appwrapper import parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.api.labels import GROUP, KIND
from mcad.api.wire import as_map, as_text
from mcad.cli.arguments.options import Option, files_option, namespace_option, record
from mcad.cli.pages.tables import echo_structured
from mcad.client.errors import CliError, warn
from mcad.client.manifests.documents import Document, read_documents
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


class Wrapping(Struct, frozen=True):
    """What the AppWrapper says besides its items: --name, --priority, --leaf and --dialect."""

    name: str = ""
    priority: int | None = None
    leaves: tuple[str, ...] = ()
    dialect: str = "v1beta2"


def wrapping_options(*, required: bool) -> Option:
    """The options of a wrapping; ``required``: there is no command without its name."""
    return record(
        "wrapping",
        Wrapping,
        click.option(
            "--name",
            metavar="NAME",
            required=required,
            default=None if required else "",
            help="The AppWrapper's name.",
        ),
        click.option("--priority", type=int, help="Its priority; higher goes first."),
        click.option(
            "--leaf",
            "leaves",
            metavar="TREE=LEAF",
            multiple=True,
            help="The leaf of a quota tree that it is charged to; may be repeated.",
        ),
        click.option(
            "--dialect",
            type=click.Choice(["v1beta1", "v1beta2"]),
            default="v1beta2",
            show_default=True,
            help="v1beta1 is MCAD's.",
        ),
    )


@click.command()
@files_option("A file of YAML or JSON")
@namespace_option
@wrapping_options(required=True)
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="The form of the output.",
)
def wrap(paths: tuple[str, ...], namespace: str | None, wrapping: Wrapping, form: str) -> None:
    """Make an AppWrapper of manifests of any kind.

    Its items are the objects of these files, in their order. Helm hooks and cluster-scoped objects
    are left out, each with a warning: apply them before.

    \b
      helm template my-release ./chart | mcad wrap -f - --name my-release | mcad submit -f -
    """
    documents = [document for path in paths for document in read_documents(path)]
    echo_structured(wrapped(documents, namespace, wrapping), form)


def wrapped(documents: Sequence[Document], namespace: str | None, wrapping: Wrapping) -> Json:
    """The AppWrapper; raises ``CliError`` if an object cannot be an item of it."""
    kept = [one for one in documents if _is_kept(one)]
    if not kept:
        raise CliError("nothing is left to wrap; name files with namespaced objects")
    metadata: Json = {"name": wrapping.name}
    namespace = _namespace(kept, namespace)
    if namespace:
        metadata["namespace"] = namespace
    if wrapping.leaves:
        metadata["labels"] = dict(map(_label, wrapping.leaves))
    spec: Json = {} if wrapping.priority is None else {"priority": wrapping.priority}
    spec |= _items([one.content for one in kept], wrapping.dialect)
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


def _is_kept(document: Document) -> bool:
    """Whether the object becomes an item; if not, a warning says why."""
    obj = document.content
    kind, metadata = as_text(obj.get("kind")), as_map(obj.get("metadata"))
    title = f"{document.origin}: {kind or 'an object'} {as_text(metadata.get('name'))}".rstrip()
    if kind == KIND:
        raise CliError(f"{title} is an AppWrapper already; submit it with `mcad submit`")
    if HOOK in as_map(metadata.get("annotations")):
        warn(f"{title} is left out: Helm runs it as a hook, which an AppWrapper has none of")
        return False
    group = as_text(obj.get("apiVersion")).rpartition("/")[0]
    if kind in _CLUSTER_SCOPED.get(group, ()):
        warn(f"{title} is left out: it is cluster-scoped; apply it before, with kubectl")
        return False
    return True


def _namespace(kept: Iterable[Document], chosen: str | None) -> str:
    """The namespace of the AppWrapper and of all of its items, "" if none names one."""
    found = chosen or ""
    for document in kept:
        own = as_text(as_map(document.content.get("metadata")).get("namespace"))
        if own and found and own != found:
            raise CliError(
                f"{document.origin}: is for namespace {own}, not {found}; all objects have "
                "the namespace of their AppWrapper: change one of them, or wrap them separately"
            )
        found = found or own
    return found


def _label(text: str) -> tuple[str, str]:
    tree, separator, leaf = text.partition("=")
    if not (tree and separator and leaf):
        raise click.UsageError(f"--leaf {text!r}: write TREE=LEAF")
    return tree, leaf


def _check(obj: Json, kept: Sequence[Document]) -> None:
    """Faults of the items end the command. Which kinds the cluster has, only `mcad submit` asks."""
    read = {**obj, "metadata": {"namespace": "default", **obj["metadata"]}}
    parsed = parse(read, catalog_of(Config(), WELL_KNOWN))
    where = ", ".join(dict.fromkeys(one.origin.partition(", document")[0] for one in kept))
    faults = [str(one) for one in parsed.problems if one.kind is WaitingReason.INVALID]
    if faults:
        raise CliError(f"{where}: {' '.join(faults)}")
    for text in parsed.workload.warnings:
        warn(f"{where}: {text}")
