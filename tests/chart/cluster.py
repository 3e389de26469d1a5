"""The chart on a real control plane: its release, and users with few rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.chart.helm import CHART, NAMESPACE, RELEASE, Helm
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.support import GROUP

Json = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
PULLED_NOWHERE = {"nodeSelector": {"example.com/no-image": "here"}}
"""The chart's own pod stays Pending: KWOK would play it, and its request would count on a node."""


class Release:
    """A release of the chart; by default ``mcad`` in the namespace ``mcad-system``."""

    def __init__(
        self,
        helm: Helm,
        plane: ControlPlane,
        chart: Path = CHART,
        *,
        name: str = RELEASE,
        namespace: str = NAMESPACE,
    ) -> None:
        self._helm = helm
        self._plane = plane
        self.chart = chart
        self.name = name
        self.namespace = namespace

    @property
    def full_name(self) -> str:
        """Of the chart's objects."""
        return self.name if "mcad" in self.name else f"{self.name}-mcad"

    def install(self, *args: str, **values: Any) -> None:
        """Install it, and wait until AppWrappers can be created."""
        self._run("install", "--create-namespace", *args, **values)
        self._plane.wait_for_crd(f"appwrappers.{GROUP}")
        # The garbage collector looks for new kinds every 30 s only; a fresh one knows it at once.
        self._plane.restart("kube-controller-manager")

    def upgrade(self, *args: str, **values: Any) -> None:
        """Other values, and only these."""
        self._run("upgrade", "--reset-values", *args, **values)

    def roll_back(self, revision: int) -> str:
        """To an earlier revision: what Helm says about it."""
        where = ("--namespace", self.namespace)
        return self._helm.run(
            "rollback", self.name, str(revision), *where, kubeconfig=self._plane.admin_kubeconfig
        )

    def uninstall(self, *args: str) -> str:
        """What Helm says about it."""
        return self._helm.run(
            "uninstall",
            self.name,
            "--namespace",
            self.namespace,
            "--wait",
            *args,
            kubeconfig=self._plane.admin_kubeconfig,
        )

    def test(self) -> str:
        """``helm test``: what Helm says about it."""
        where = ("--namespace", self.namespace, "--timeout", "60s")
        return self._helm.run("test", self.name, *where, kubeconfig=self._plane.admin_kubeconfig)

    def try_elsewhere(self, namespace: str, *args: str, **values: Any) -> None:
        """Whether it could be installed in another namespace; nothing is."""
        self._run("install", "--namespace", namespace, "--dry-run=server", *args, **values)

    def _run(self, verb: str, *args: str, **values: Any) -> None:
        self._helm.run(
            verb,
            self.name,
            str(self.chart),
            "--namespace",
            self.namespace,
            *args,
            values=values,
            kubeconfig=self._plane.admin_kubeconfig,
        )

    def account(self) -> Path:
        """The kubeconfig of the chart's ServiceAccount."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.full_name}"
        assert self._plane.request("GET", path)[0] == 200, "the chart made it"
        token = self._plane.service_account(self.namespace, self.full_name)
        return self._plane.kubeconfig_for_token(token, self.full_name)

    def config(self) -> Path:
        """The chart's configuration as a file, as the pod would have it."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{self.full_name}"
        text = self._plane.request("GET", path)[1]["data"]["config.yaml"]
        file = self._plane.folder / "config.yaml"
        file.write_text(text)
        return file

    def objects(self) -> set[str]:
        """What carries the label of the release, but for what Kubernetes makes itself."""
        kinds = (
            "deployments,services,configmaps,serviceaccounts,networkpolicies,roles,rolebindings,"
            "clusterroles,clusterrolebindings,customresourcedefinitions,poddisruptionbudgets,"
            "validatingadmissionpolicies,validatingadmissionpolicybindings"
        )
        label = f"app.kubernetes.io/instance={self.name}"
        found = self._plane.kubectl("get", kinds, "--all-namespaces", "-l", label, "-o", "name")
        return {
            line.partition(".")[0].split("/")[0] + "/" + line.split("/")[1]
            for line in found.split()
        }


def rule(group: str, resources: str, *verbs: str) -> Json:
    """A rule of a role; resources are separated by commas."""
    return {"apiGroups": [group], "resources": resources.split(","), "verbs": list(verbs)}


APPWRAPPERS = rule(GROUP, "appwrappers", "create", "get", "list", "patch", "update", "delete")


class User:
    """A service account that may do what its rules say, in one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str, name: str, *rules: Json) -> None:
        self._plane = plane
        self.namespace = namespace
        self.name = f"system:serviceaccount:{namespace}:{name}"
        self._token = plane.service_account(namespace, name)
        self.kubeconfig = plane.kubeconfig_for_token(self._token, name)
        meta = {"name": name, "namespace": namespace}
        subject = {"kind": "ServiceAccount", **meta}
        role = {"apiGroup": RBAC, "kind": "Role", "name": name}
        v1 = {"apiVersion": f"{RBAC}/v1", "metadata": meta}
        plane.apply(
            [
                v1 | {"kind": "Role", "rules": list(rules)},
                v1 | {"kind": "RoleBinding", "roleRef": role, "subjects": [subject]},
            ]
        )

    def may(self, verb: str, resource: str) -> bool:
        """What ``kubectl auth can-i`` says."""
        where = ("--namespace", self.namespace)
        said = self._plane.kubectl(
            "auth", "can-i", verb, resource, *where, kubeconfig=self.kubeconfig, check=False
        )
        return said.strip().endswith("yes")

    def create(self, obj: Json, *, dry_run: bool = False) -> tuple[int, Json]:
        """Create an AppWrapper."""
        query = "?dryRun=All" if dry_run else ""
        return self._plane.request("POST", self._path(obj) + query, obj, token=self._token)

    def replace(self, obj: Json) -> tuple[int, Json]:
        """Replace an AppWrapper that was read before."""
        path = f"{self._path(obj)}/{obj['metadata']['name']}"
        return self._plane.request("PUT", path, obj, token=self._token)

    def patch(self, obj: Json, patch: Any, kind: str = "merge-patch+json") -> tuple[int, Json]:
        """Patch an AppWrapper."""
        path = f"{self._path(obj)}/{obj['metadata']['name']}"
        how = f"application/{kind}"
        return self._plane.request("PATCH", path, patch, content_type=how, token=self._token)

    def _path(self, obj: Json) -> str:
        return f"/apis/{obj['apiVersion']}/namespaces/{self.namespace}/appwrappers"


def generic(name: str, *templates: Json, namespace: str = "team", **spec: Any) -> Json:
    """An AppWrapper in the earlier dialect."""
    items = [{"generictemplate": one} for one in templates]
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"resources": {"GenericItems": items}, **spec},
    }


def yaml_of(obj: Json) -> str:
    """For kubectl."""
    text: str = yaml.safe_dump(obj)
    return text


def expression_warnings(plane: ControlPlane, policy: str) -> list[Any]:
    """What the API server finds wrong with the expressions of a policy."""
    path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{policy}"

    def checked() -> Any:
        found = plane.request("GET", path)[1]
        status = found.get("status", {})
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        return status if current else None

    status = plane.wait_for(checked, 60, "the policy is type-checked")
    warnings: list[Any] = status.get("typeChecking", {}).get("expressionWarnings", [])
    return warnings
