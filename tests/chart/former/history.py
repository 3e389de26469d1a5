"""The former version at work, from the history of this repository: recorded, and rolled over."""

from __future__ import annotations

import json
import socket
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.chart.cluster import Release
from tests.chart.former import COMMIT, LEASES, PACKED, STATES, TEAM, VALUES, WORLD, add_node
from tests.chart.helm import Helm
from tests.checkout import check_out
from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.support import (
    appwrapper,
    appwrappers,
    configmap,
    create,
    delete,
    deployment,
    get,
    pod,
    pods,
    states,
)

Json = dict[str, Any]

_KINDS = {"configmaps": "api/v1", "pods": "api/v1", "deployments": "apis/apps/v1"}
_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion")


class Stage:
    """A control plane with the former release, and AppWrappers that run, wait and have ended."""

    def __init__(self, plane: ControlPlane, helm: Helm, folder: Path) -> None:
        self.plane, self.helm = plane, helm
        self.chart = folder / "deploy/helm/mcad"
        release = Release(helm, plane, chart=self.chart)
        release.install(**VALUES)
        add_node(plane)
        plane.create_namespace(TEAM)
        env = {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}
        config = ("--config", str(release.config()))
        self.dispatcher = Dispatcher(plane, release.account(), *config, env=env, name="former")

    def live(self) -> None:
        """Submit AppWrappers, and wait until they are as STATES says."""
        self.dispatcher.start()
        _submit(self.plane)
        self.plane.wait_for(lambda: states(self.plane, TEAM) == STATES, 90, "all are as told")
        self.plane.wait_for(lambda: _counts(self.plane) == [2, 1], 60, "pod counts are written")


@contextmanager
def stage() -> Iterator[Stage]:
    """The former version, checked out into a temporary folder."""
    with TemporaryDirectory() as name, ControlPlane() as plane:
        folder = Path(name)
        check_out(COMMIT, folder, "mcad", "deploy/helm/mcad")
        yield Stage(plane, Helm(binaries.ensure_helm(), folder), folder)


def record() -> None:
    """Write both files of this folder."""
    with stage() as one:
        one.live()
        plane = one.plane
        found = [get(plane, name, TEAM) for name in STATES]
        one.dispatcher.stop()
        world = {
            "commit": COMMIT,
            "lease": _client_side(plane.get(f"{LEASES}/mcad-dispatcher")),
            "appwrappers": [_with_items(plane, obj) for obj in found],
        }
        text = json.dumps(world, indent=1).replace(f"{socket.gethostname()}-", "former-")
        WORLD.write_text(text + "\n")
        with tarfile.open(PACKED, "w:xz", preset=9) as tar:
            tar.add(one.chart, "deploy/helm/mcad", filter=_anonymous)


def roll() -> None:
    """Upgrade while the former dispatcher leads: the present one stands by, then takes over."""
    with stage() as one:
        one.live()
        plane, release = one.plane, Release(one.helm, one.plane)
        before = _uids(plane)
        release.upgrade(**VALUES)
        config = ("--config", str(release.config()))
        present = Dispatcher(plane, release.account(), *config, name="present")
        present.start(leads=False)
        role = present.get("/readyz")[1].strip()
        assert role.startswith("standby; "), role
        one.dispatcher.stop()
        plane.wait_for(lambda: present.get("/readyz")[1] == "ok\n", 30, "the present one leads")
        assert (states(plane, TEAM), _uids(plane)) == (STATES, before)
        delete(plane, "bare", namespace=TEAM)
        plane.wait_for(lambda: states(plane, TEAM)["waiting"] == "Running", 60, "its turn came")
        assert present.stop() == 0
        print(f"{COMMIT} led ({role}), the present version took over: {len(before)} objects stayed")


def _uids(plane: ControlPlane) -> set[str]:
    found = [*appwrappers(plane, TEAM).values(), *pods(plane, TEAM)]
    return {one["metadata"]["uid"] for one in found}


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _submit(plane: ControlPlane) -> None:
    before = {
        "deployed": deployment("deployed", 2, "500m"),
        "bare": pod("bare", "500m"),
        "done": pod("done", "100m", ("true",)),
    }
    for name, template in before.items():
        more = [configmap(name)] if name == "bare" else []
        create(plane, appwrapper(name, template, *more, namespace=TEAM))
    started = ("Running", "Completed")
    plane.wait_for(
        lambda: all(one in started for one in states(plane, TEAM).values()), 60, "all have started"
    )
    create(plane, appwrapper("waiting", deployment("waiting", 2, "400m"), namespace=TEAM))


def _counts(plane: ControlPlane) -> list[int]:
    return [get(plane, name, TEAM)["status"].get("running", 0) for name in ("deployed", "bare")]


def _with_items(plane: ControlPlane, owner: Json) -> Json:
    found = []
    for plural, api in _KINDS.items():
        path = f"{api}/namespaces/{TEAM}/{plural}"
        for one in plane.get(f"/{path}")["items"]:
            if owner["metadata"]["uid"] in [ref["uid"] for ref in _owners(one)]:
                del one["metadata"]["uid"]
                one.pop("status", None)
                found.append({"path": path, "object": _client_side(one)})
    return {"appwrapper": _client_side(owner), "items": found}


def _owners(obj: Json) -> list[Json]:
    found: list[Json] = obj["metadata"].get("ownerReferences", [])
    return found


def _client_side(obj: Json) -> Json:
    metadata = {key: one for key, one in obj["metadata"].items() if key not in _OF_THE_SERVER}
    return obj | {"metadata": metadata}
