"""The effects of the built-in admission plugins that users see.

NamespaceLifecycle, ServiceAccount (the name, no token volume), Priority, DefaultTolerationSeconds.
ResourceQuota and LimitRanger are not simulated; a real server has their words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.failures import Cause, Failure
from mcad.sim.kinds import Kind

if TYPE_CHECKING:
    from mcad.sim.store import Store


NAMESPACES = ("", "namespaces")
ACCOUNTS = ("", "serviceaccounts")
PRIORITY_CLASSES = ("scheduling.k8s.io", "priorityclasses")
IMMORTAL = ("default", "kube-system", "kube-public")
TOLERATION_S = 300

# system-* classes exist in every cluster (Kubernetes docs, "Pod Priority and Preemption").
_SYSTEM_PRIORITY = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def check_namespace(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Nothing is created in a namespace that is missing or going; raises Failure."""
    found = store.get(NAMESPACES, ("", namespace))
    if found is None:
        details = {"name": namespace, "kind": "namespaces"}
        raise Failure(404, "NotFound", f'namespaces "{namespace}" not found', details)
    if found["metadata"].get("deletionTimestamp"):
        why = f"namespace {namespace} is being terminated"
        text = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        cause = Cause("NamespaceTerminating", why, "metadata.namespace")
        raise failures.forbidden(kind, name, text, [cause])


def admit_pod(store: Store, kind: Kind, pod: Json) -> Json:
    """Complete a new pod, the caller's own copy; raises Failure."""
    spec = pod["spec"]
    account = spec.get("serviceAccountName") or "default"
    _check_account(store, kind, pod, account)
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    _set_priority(store, kind, pod)
    _tolerate_for_a_while(spec)
    return pod


def _check_account(store: Store, kind: Kind, pod: Json, account: str) -> None:
    """The default account of a namespace is not checked: it may come a moment later."""
    namespace = pod["metadata"].get("namespace", "")
    if account != "default" and store.get(ACCOUNTS, (namespace, account)) is None:
        text = f'error looking up service account {namespace}/{account}: serviceaccount "{account}"'
        raise failures.forbidden(kind, pod["metadata"].get("name", ""), f"{text} not found")


def _set_priority(store: Store, kind: Kind, pod: Json) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    chosen = _class_or_default(store, name)
    if name and chosen is None:
        text = f"no PriorityClass with name {name} was found"
        raise failures.forbidden(kind, pod["metadata"].get("name", ""), text)
    given = spec.get("priority")
    if chosen is not None:
        spec["priorityClassName"], spec["priority"], policy = chosen
    else:
        spec["priority"], policy = 0, "PreemptLowerPriority"
    if given not in {None, spec["priority"]}:
        text = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority"
            f" admission controller computed {spec['priority']} from the given PriorityClass name"
        )
        raise failures.forbidden(kind, pod["metadata"].get("name", ""), text)
    spec.setdefault("preemptionPolicy", policy)


def _class_or_default(store: Store, name: str) -> tuple[str, int, str] | None:
    if name in _SYSTEM_PRIORITY:
        return name, _SYSTEM_PRIORITY[name], "PreemptLowerPriority"
    for (_, found), obj in store.items(PRIORITY_CLASSES):
        if found == name or (not name and obj.get("globalDefault")):
            return found, obj["value"], obj.get("preemptionPolicy", "PreemptLowerPriority")
    return None


def _tolerate_for_a_while(spec: Json) -> None:
    tolerations = spec.get("tolerations") or []
    for condition in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{condition}"
        tolerated = any(
            one.get("key") in {key, None, ""} and one.get("effect") in {"NoExecute", None, ""}
            for one in tolerations
        )
        if not tolerated:
            added = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_S}
            tolerations = [*tolerations, {"key": key} | added]
    spec["tolerations"] = tolerations
