"""One input: an AppWrapper with a namespace and nodes of its own, so that many run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.support import (
    GROUP,
    conditions_of,
    configmap,
    create,
    items,
    pods,
    status_of,
)

Json = dict[str, Any]

HERE = Path(__file__).parent / "cases"
MERGE = "application/merge-patch+json"
POOL = "case"
"""The label and the taint of the nodes of a case."""

DIALECTS = ("v1beta1", "v1beta2")
PLURALS = {"StatefulSet": "statefulsets", "MPIJob": "mpijobs"}


def template(name: str) -> Json:
    """The wrapped object of a case."""
    made: Json = yaml.safe_load((HERE / f"{name}.yaml").read_text())
    return made


def wrapped(dialect: str, name: str, namespace: str, *templates: Json, **spec: Any) -> Json:
    """An AppWrapper of these objects in a dialect."""
    field = "generictemplate" if dialect == "v1beta1" else "template"
    listed = [{field: one} for one in templates]
    inner = {"resources": {"GenericItems": listed}} if dialect == "v1beta1" else None
    return {
        "apiVersion": f"{GROUP}/{dialect}",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**(inner or {"components": listed}), **spec},
    }


def placed(obj: Any, pool: str) -> Any:
    """The same with every pod of it on the nodes of a pool, and on no other."""
    if isinstance(obj, list):
        return [placed(one, pool) for one in obj]
    if not isinstance(obj, dict):
        return obj
    found = {key: placed(value, pool) for key, value in obj.items()}
    if "containers" in found:
        found["nodeSelector"] = {POOL: pool}
        found["tolerations"] = [{"key": POOL, "value": pool, "effect": "NoSchedule"}]
    return found


def hasten(obj: Any, times: int) -> None:
    """Let every init container that sleeps end so many times sooner."""
    if isinstance(obj, list):
        for one in obj:
            hasten(one, times)
    elif isinstance(obj, dict):
        for container in obj.get("initContainers", ()):
            word, seconds = container["command"]
            container["command"] = [word, str(int(seconds) // times)]
        for value in obj.values():
            hasten(value, times)


class Case:
    """An AppWrapper of a case in one dialect, and what becomes of it.

    ``act`` is what is done to it once it was submitted; ``trouble`` is what went wrong with that.
    """

    def __init__(
        self,
        plane: ControlPlane,
        name: str,
        dialect: str,
        cpus: tuple[str, ...] = (),
        variant: str = "",
    ) -> None:
        """``variant`` tells several of one case apart; until ``submit`` its template may change."""
        self.plane, self.case, self.dialect = plane, name, dialect
        self.pool = f"{name}{variant}-{dialect}"
        self.template = placed(template(name), self.pool)
        self.name: str = self.template["metadata"]["name"]
        self.cpus = cpus
        self.completion = ""  # v1beta1's ``completionstatus``, without which it never completes
        self.uid = ""
        self.item_uid = ""
        self.first_pods: frozenset[str] = frozenset()
        self.trouble: BaseException | None = None
        self.server = ""  # of its dispatcher, once that runs

    # -- what is made --------------------------------------------------------------------------

    @property
    def nodes(self) -> list[str]:
        """The names of its nodes."""
        return [f"{self.pool}-{number}" for number, _ in enumerate(self.cpus)]

    def add_nodes(self) -> None:
        """Nodes for its pods alone."""
        taint = {"key": POOL, "value": self.pool, "effect": "NoSchedule"}
        for node, cpu in zip(self.nodes, self.cpus, strict=True):
            self.plane.add_node(node, cpu, labels={POOL: self.pool}, taints=[taint], wait=False)

    def submit(self, **spec: Any) -> None:
        """Create its AppWrapper, in a namespace of its own."""
        self.plane.create_namespace(self.pool)
        obj = wrapped(self.dialect, self.name, self.pool, self.template, **spec)
        if self.completion and self.dialect == "v1beta1":
            obj["spec"]["resources"]["GenericItems"][0]["completionstatus"] = self.completion
        made = create(self.plane, obj)
        self.uid = made["metadata"]["uid"]

    def follow(self, cpu: str, name: str = "next") -> None:
        """Submit one more that wants these CPUs of the same nodes."""
        spec = {"restartPolicy": "Never", "containers": [_container(cpu)]}
        one = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        create(self.plane, wrapped(self.dialect, name, self.pool, placed(one, self.pool)))

    def look_once_more(self) -> None:
        """Until the dispatcher has looked at everything that is there now: an AppWrapper without
        pods, which is submitted now, runs."""
        create(self.plane, wrapped(self.dialect, "probe", self.pool, configmap("probe")))
        self.plane.wait_for(lambda: self.state("probe") == "Running", 30, "one without pods runs")

    def add_pod(self, name: str, cpu: str, **spec: Any) -> None:
        """A Pod of no AppWrapper on its nodes."""
        inner = {"restartPolicy": "Never", "containers": [_container(cpu)], **spec}
        one = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": inner}
        self.plane.ask("POST", self._core("pods"), placed(one, self.pool))

    # -- what there is -------------------------------------------------------------------------

    def status(self, name: str = "") -> Json:
        """The status of the AppWrapper."""
        return status_of(self.plane, name or self.name, self.pool)

    def state(self, name: str = "") -> str:
        """``status.state``."""
        found: str = self.status(name).get("state", "")
        return found

    def conditions(self) -> dict[str, Json]:
        """Type -> condition."""
        return conditions_of(self.plane, self.name, self.pool)

    @property
    def attempt(self) -> int:
        """Which attempt there is a record of."""
        found: int = self.status().get("dispatch", {}).get("attempt", 0)
        return found

    @property
    def item_path(self) -> str:
        """Where the wrapped object is."""
        version, kind = self.template["apiVersion"], self.template["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return f"{root}/namespaces/{self.pool}/{kind.lower()}s/{self.name}"

    def item(self) -> Json:
        """The wrapped object, {} if there is none."""
        code, found = self.plane.request("GET", self.item_path)
        return found if code == 200 else {}

    def pods(self, phase: str = "") -> list[Json]:
        """Its pods that are not being deleted, those of followers left out."""
        found = [one for one in pods(self.plane, self.pool) if self._is_own(one)]
        return [one for one in found if not phase or one["status"].get("phase") == phase]

    def events(self, reason: str = "") -> list[Json]:
        """The Events about the AppWrapper."""
        found = items(self.plane, self._core("events"))
        return [
            one
            for one in found
            if (one["involvedObject"]["kind"], one["involvedObject"]["name"])
            == ("AppWrapper", self.name)
            and (not reason or one["reason"] == reason)
        ]

    def _is_own(self, pod: Json) -> bool:
        labels: Json = pod["metadata"].get("labels", {})
        return bool(labels.get(f"{GROUP}/appwrapper") == self.name)

    def _core(self, plural: str) -> str:
        return f"/api/v1/namespaces/{self.pool}/{plural}"

    # -- what is done to it --------------------------------------------------------------------

    def wait_for_pods(self, count: int, phase: str = "Running", seconds: float = 60) -> None:
        """Until it has so many pods in this phase."""
        self.plane.wait_for(
            lambda: len(self.pods(phase)) == count, seconds, f"{self.pool}: {count} pods {phase}"
        )

    def remember(self) -> None:
        """Note the object and the pods that have to be left alone."""
        self.item_uid = self.item()["metadata"]["uid"]
        self.first_pods = frozenset(one["metadata"]["uid"] for one in self.pods())

    def patch_item(self, body: Json, subresource: str = "") -> None:
        """A merge patch of the wrapped object, as a person or its controller makes it."""
        path = f"{self.item_path}/{subresource}".rstrip("/")
        self.plane.ask("PATCH", path, body, content_type=MERGE)

    def patch_pod(self, name: str, body: Json, subresource: str = "") -> None:
        """A merge patch of a pod."""
        path = f"{self._core('pods')}/{name}/{subresource}".rstrip("/")
        self.plane.ask("PATCH", path, body, content_type=MERGE)

    def end_pod(self, pod: Json, code: int) -> None:
        """Let all containers of a pod end, as its kubelet would tell it."""
        ended = {"exitCode": code, "reason": "Error" if code else "Completed"}
        told = [
            {**one, "ready": False, "started": False, "state": {"terminated": ended}}
            for one in pod["status"]["containerStatuses"]
        ]
        status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": told}
        self.patch_pod(pod["metadata"]["name"], {"status": status}, "status")

    # -- what has to be ------------------------------------------------------------------------

    def check_is_the_first_attempt(self) -> None:
        """The same object is there, and no attempt ended."""
        assert (self.state(), self.attempt) == ("Running", 1), self.status()
        assert self.item().get("metadata", {}).get("uid") == self.item_uid, "it was created anew"

    def check_pods_stay(self) -> None:
        """Every pod that was there is still there."""
        now = {one["metadata"]["uid"] for one in self.pods()}
        assert self.first_pods, "some pods were there"
        assert self.first_pods <= now, f"{len(self.first_pods - now)} of its pods are gone"


def at_once(cases: Sequence[Case], act: Callable[[Case], None]) -> None:
    """The same for several cases at the same time."""
    with ThreadPoolExecutor(len(cases)) as pool:
        list(pool.map(act, cases))


def _container(cpu: str) -> Json:
    return {
        "name": "main",
        "image": "busybox:1.36",
        "command": ["sleep", "100000"],
        "resources": {"requests": {"cpu": cpu}},
    }


def waiting(found: list[Json]) -> Iterator[Json]:
    """Those of these pods that kube-scheduler has not bound."""
    return (one for one in found if "nodeName" not in one["spec"])
