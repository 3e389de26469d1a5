"""The health checks of docs/operate/gitops.md, about AppWrappers of a dispatcher in each state."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cel_expr_python import cel

from tests.cli.embedded import Embedded, wait_for
from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip
from tests.documents.pages import DOCS
from tests.e2e.support import appwrapper, pod

Json = dict[str, Any]

PAGE = DOCS / "operate" / "gitops.md"
EXAMPLES = [
    yaml.safe_load(text)
    for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
]
HEALTH = "resource.customizations.health.workload.codeflare.dev_AppWrapper"

# name -> Argo CD's status, a word of its message, and Flux's
EXPECTED = {
    "new": ("Progressing", "", "inProgress"),
    "runs": ("Healthy", "running", "current"),
    "waits": ("Progressing", "cpu: 9 requested", "inProgress"),
    "done": ("Healthy", "completed", "current"),
    "fails": ("Degraded", "failed", "failed"),
    "held": ("Suspended", "on hold", "inProgress"),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    """AppWrappers in these states, as the API server has them."""
    fails = appwrapper("fails", pod("fails", command=("false",)))
    fails["metadata"]["annotations"] = {
        "workload.codeflare.dev.appwrapper/retryLimit": "0",
        "workload.codeflare.dev.appwrapper/failureGracePeriodDuration": "0s",
    }
    with Embedded(tmp_path_factory.mktemp("gitops")).running() as cluster:
        cluster.create(
            appwrapper("runs", pod("runs")),
            appwrapper("waits", pod("waits", "9")),
            appwrapper("done", pod("done", command=("true",))),
            fails,
            appwrapper("held", pod("held"), suspend=True),
        )
        cluster.until("runs", "Running")
        cluster.until("done", "Completed")
        cluster.until("fails", "Failed")
        found = {name: cluster.until(name, "Pending") for name in ("waits", "held")}
        wait_for(lambda: "Backoff" in str(cluster.get("waits")), "it was refused")
        for name in ("runs", "done", "fails", "waits"):
            found[name] = cluster.get(name) or {}
    return found | {"new": appwrapper("new", pod("new"))}


def _of(key: str) -> Iterator[Any]:
    """The values of a key, wherever it is in an example."""
    for example in EXAMPLES:
        for part in (example.get("data", {}), example.get("spec", {})):
            if key in part:
                yield part[key]


@pytest.mark.parametrize("name", EXPECTED)
def test_argo_cd(seen: dict[str, Json], name: str, tmp_path: Path) -> None:
    (text,) = _of(HEALTH)
    script = tmp_path / "health.lua"
    script.write_text(text)
    done = subprocess.run(
        [str(built_or_skip(binaries.ensure_health)), str(script)],
        input=json.dumps(seen[name]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    health = json.loads(done.stdout)
    status, word, _ = EXPECTED[name]
    assert health["status"] == status
    assert word in health["message"].lower()


@pytest.mark.parametrize("name", EXPECTED)
def test_flux(seen: dict[str, Json], name: str) -> None:
    """Exactly one of the expressions holds; their variables are the fields of the object."""
    ((check,),) = _of("healthCheckExprs")
    obj = {"status": {}} | seen[name]
    assert (check["apiVersion"], check["kind"]) == (obj["apiVersion"], obj["kind"])
    env = cel.NewEnv(variables=dict.fromkeys(obj, cel.Type.DYN))
    held = [
        word
        for word in ("inProgress", "failed", "current")
        if env.compile(check[word]).eval(data=obj).value()
    ]
    assert held == [EXPECTED[name][2]]
