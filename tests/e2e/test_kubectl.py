"""Unmodified kubectl: one script against the embedded cluster and against a real one.

What it prints has to be the same, but for ages, generated names, addresses and the like, which are
masked; each difference that is left is listed here with its reason.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import built_or_skip
from tests.e2e.embedded import Embedded
from tests.e2e.process import Dispatcher

pytestmark = pytest.mark.controlplane

WIDE_APPWRAPPER = """
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: bundle}
spec:
  components:
  - template:
      apiVersion: v1
      kind: Pod
      metadata: {name: inside}
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: busybox, command: [sleep, "600"], resources: {requests: {cpu: 100m}}}
"""
WAITING = WIDE_APPWRAPPER.replace("bundle", "waiting").replace("100m", "1000")
UNKNOWN_FIELD = WIDE_APPWRAPPER.replace("spec:", "spec:\n  nonsense: 1", 1)
POD = """
apiVersion: v1
kind: Pod
metadata: {name: applied, labels: {app: applied}}
spec:
  containers:
  - {name: main, image: "busybox:1", command: [sleep, "600"]}
"""
POD_CHANGED = POD.replace("busybox:1", "busybox:2")
POD_WRONG = POD.replace("image:", "imagine:")
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {one: "1", two: "2"}
"""


def listed(*manifests: str) -> str:
    """A List of them."""
    items = [yaml.safe_load(one) for one in manifests]
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})


@dataclass(frozen=True)
class Step:
    """One command line; ``stdin`` is what ``-f -`` reads, ``shown`` whether output is compared."""

    line: str
    stdin: str = ""
    shown: bool = True


def step(line: str, stdin: str = "") -> Step:
    return Step(line, stdin)


def settle(line: str) -> Step:
    """A step that waits until the cluster has got somewhere; what it says is of no interest."""
    return Step(line, shown=False)


SCRIPT = (
    settle("wait --for=create serviceaccount/default --timeout=30s"),
    # What there is
    step("get namespace default"),
    step("get nodes"),
    step("get nodes -o name"),
    step("get crd"),
    step("api-resources --api-group=apps"),
    step("api-resources --api-group=workload.codeflare.dev"),
    step("api-resources --api-group=batch -o wide"),
    step("get nope"),
    step("get pods"),
    step("get pods missing"),
    # Explain
    step("explain appwrapper"),
    step("explain appwrapper.spec --recursive"),
    step("explain appwrapper.spec.components --api-version=workload.codeflare.dev/v1beta2"),
    step("explain pod.spec.containers.resources"),
    step("explain pod.spec.containers.livenessProbe.httpGet.scheme"),
    step("explain deployments.spec.strategy.rollingUpdate"),
    step("explain job.spec.podFailurePolicy.rules"),
    step("explain pod.nope"),
    # Create
    step("create namespace other"),
    step("create deployment web --image=nginx --replicas=2 --port=80"),
    step("create job once --image=busybox -- sleep 1"),
    step("create configmap made --from-literal=a=b"),
    step("create secret generic hidden --from-literal=a=b"),
    step("create serviceaccount robot"),
    step("create quota few --hard=pods=10 -n other"),
    step("create role reader --verb=get --resource=pods"),
    step("create rolebinding readers --role=reader --serviceaccount=default:robot"),
    step("create clusterrole all-reader --verb=get --resource=pods"),
    step("create priorityclass high --value=5"),
    step("create service clusterip web --tcp=80:80"),
    step("create deployment web --image=nginx"),
    step("create deployment Bad_Name --image=nginx"),
    step("create deployment dry --image=nginx --dry-run=server"),
    step("create deployment dry --image=nginx --dry-run=client -o yaml"),
    step("expose deployment web --port=81 --name=exposed"),
    step("run one --image=busybox --restart=Never -- sleep 1"),
    settle("wait --for=condition=Available deployment/web --timeout=60s"),
    settle("wait --for=condition=Complete job/once --timeout=60s"),
    settle("wait --for=jsonpath={.status.phase}=Succeeded pod/one --timeout=60s"),
    # Look
    step("get deployments,jobs,configmaps,secrets,sa"),
    step("get deployment web -o wide"),
    step("get rs"),
    step("get pods"),
    step("get pod one -o wide"),
    step("get pods --show-labels -l run=one"),
    step("get pods -L run --field-selector=status.phase=Succeeded"),
    step("get pods --field-selector=spec.nope=1"),
    step("get pods -l 'a in (b'"),
    step("get pods -A --no-headers"),
    step("get priorityclass/high"),
    step("get quota -n other"),
    step("get job once -o jsonpath='{.status.succeeded} {.spec.template.spec.containers[0].name}'"),
    step("get deployment web -o custom-columns=NAME:.metadata.name,REPLICAS:.spec.replicas"),
    step("get services web exposed -o wide"),
    step("get pods --chunk-size=1 -l run"),
    step("get pod one --watch --request-timeout=2s"),
    step("get pod one --watch-only --request-timeout=1s"),
    step("get configmap made -o yaml"),
    step("get deployment web -o yaml"),
    step("get job once -o yaml"),
    step("get crd appwrappers.workload.codeflare.dev -o yaml"),
    step("get events --for pod/one"),
    step("get events --for job/once -o wide"),
    step("get events --types=Warning"),
    step("describe pod one"),
    step("describe node node-2"),
    step("describe service web"),
    step("describe namespace other"),
    step("describe deployment web"),
    step("describe job once"),
    step("describe configmap made"),
    step("describe quota few -n other"),
    step("logs deployment/missing"),
    # Change
    step("scale deployment web --replicas=3"),
    settle("wait --for=jsonpath={.status.readyReplicas}=3 deployment/web --timeout=60s"),
    step("get deployment web"),
    step("set image deployment/web nginx=nginx:2"),
    settle("rollout status deployment/web --timeout=60s"),
    step("rollout status deployment/web"),
    step("rollout history deployment/web"),
    step("rollout restart deployment/web"),
    settle("rollout status deployment/web --timeout=60s"),
    step("label pod one color=red"),
    step("label pod one color=blue"),
    step("label pod one color=blue --overwrite"),
    step("annotate pod one note=seen"),
    step("get pod one -o jsonpath='{.metadata.labels} {.metadata.annotations}'"),
    step("""patch deployment web --type=merge -p '{"spec":{"minReadySeconds":1}}'"""),
    step(
        """patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"nginx","""
        """"env":[{"name":"A","value":"1"}]}]}}}}'"""
    ),
    step("get deployment web -o jsonpath='{.spec.template.spec.containers}'"),
    step("""patch deployment missing -p '{}'"""),
    step("edit configmap made"),
    step("get configmap made -o jsonpath='{.data}'"),
    # Apply
    step("apply -f -", POD),
    step("apply -f -", POD),
    step("diff -f -", POD_CHANGED),
    step("apply -f -", POD_CHANGED),
    step("apply -f - --validate=strict", POD_WRONG),
    step("create -f -", POD),
    step("replace -f -", CONFIG_MAP),
    step("create -f -", CONFIG_MAP),
    step("replace -f -", CONFIG_MAP.replace('"1"', '"one"')),
    step("get configmap settings -o jsonpath='{.data}'"),
    step("apply --server-side -f -", CONFIG_MAP.replace("settings", "sided")),
    step("apply --server-side -f - --field-manager=other", CONFIG_MAP.replace("settings", "sided")),
    step("apply -f -", listed(CONFIG_MAP.replace("settings", "in-list"), POD)),
    step("apply -f -", listed(CONFIG_MAP.replace("settings", "in-list"), POD)),
    step("create -f -", listed(CONFIG_MAP.replace("settings", "in-list"))),
    step("apply --server-side -f -", listed(CONFIG_MAP.replace("settings", "listed"))),
    step("replace -f -", listed(CONFIG_MAP.replace("settings", "listed"))),
    step("delete -f -", listed(CONFIG_MAP.replace("settings", "listed"))),
    # AppWrappers
    step("apply -f -", UNKNOWN_FIELD),
    step("create -f -", WIDE_APPWRAPPER),
    settle("wait --for=condition=Dispatched appwrapper/bundle --timeout=60s"),
    settle("wait --for=condition=Ready pod/inside --timeout=60s"),
    settle("wait --for=jsonpath={.status.phase}=Running appwrapper/bundle --timeout=60s"),
    step("get appwrappers"),
    step("get aw bundle -o wide"),
    step("get aw -o name"),
    step("get mcad -A"),
    step("describe appwrapper bundle"),
    step("create -f -", WAITING),
    settle("wait --for=jsonpath={.status.queuejobstate}=Backoff appwrapper/waiting --timeout=60s"),
    step("get aw -o wide"),
    step("delete -f - --timeout=60s", WAITING),
    step("delete -f - --timeout=60s", WIDE_APPWRAPPER),
    settle("wait --for=delete pod/inside --timeout=60s"),
    step("get aw"),
    # Nodes
    step("cordon node-1"),
    step("get node node-1"),
    step("drain node-1 --ignore-daemonsets --force --timeout=60s -l nothing=matches"),
    step("taint node node-1 key=value:NoSchedule"),
    step("taint node node-1 key=value:NoSchedule"),
    step("taint node node-1 key-"),
    step("uncordon node-1"),
    step("uncordon node-1"),
    # Rights, and what is served
    step("auth can-i create pods"),
    step("get --raw /healthz"),
    step("get --raw /apis/apps/v9"),
    # The end
    step("delete pod applied --now --timeout=60s"),
    step("delete pod one --now --timeout=60s"),
    step("delete pod one"),
    step("delete deployment web --timeout=60s"),
    step("delete job once --cascade=foreground --timeout=60s"),
    step("delete job --all --timeout=60s"),
    # Nothing else runs any more, so it is known what a drain has to evict
    settle("wait --for=delete pods --all --timeout=60s"),
    step("cordon node-2"),
    step("create deployment moved --image=nginx"),
    settle("wait --for=condition=Available deployment/moved --timeout=60s"),
    step("get pods -l app=moved -o custom-columns=NODE:.spec.nodeName"),
    step("uncordon node-2"),
    settle(
        "drain node-1 --timeout=60s"
    ),  # one deletes, the other evicts: what kubectl says differs
    settle("wait --for=condition=Available deployment/moved --timeout=60s"),
    step(
        "get pods -l app=moved -o custom-columns=NODE:.spec.nodeName --field-selector="
        "status.phase=Running"
    ),
    step("delete deployment moved --timeout=60s"),
    step("delete namespace other --timeout=60s"),
    step("get namespaces other"),
)

_DESCRIPTIONS = "the client library has them on one line, without enumerations, and none of objects"
_NO_QUOTA = "what quotas limit is not counted"
KNOWN: dict[str, str] = {
    "api-resources --api-group=apps": "there are no ControllerRevisions",
    "explain pod.spec.containers.resources": _DESCRIPTIONS,
    "explain pod.spec.containers.livenessProbe.httpGet.scheme": _DESCRIPTIONS,
    "explain deployments.spec.strategy.rollingUpdate": _DESCRIPTIONS,
    "explain job.spec.podFailurePolicy.rules": _DESCRIPTIONS,
    "get quota -n other": _NO_QUOTA,
    "describe quota few -n other": _NO_QUOTA,
    "describe namespace other": _NO_QUOTA,
    "describe service web": "endpoints are not filled in",
    "describe pod one": "KWOK tells less than a kubelet, and no token is mounted here",
    "describe node node-2": "KWOK's nodes say other things about themselves",
    "apply -f - --validate=strict": "the object is quoted, not the patch as Go prints a map",
}
"""By command line, why the two differ. One that differs no more has to go from here."""


def test_kubectl_prints_the_same(
    control_plane: ControlPlane, dispatcher: Dispatcher, tmp_path: Path
) -> None:
    for number in (1, 2):
        control_plane.add_node(f"node-{number}", cpu="8", memory="32Gi", pods=110)
    with Embedded(tmp_path, "--nodes", "2", "--cpu", "8", "--memory", "32Gi") as embedded:
        binary = control_plane.layout.bin / "kubectl"
        on_embedded = Kubectl(tmp_path, binary, embedded.kubeconfig)
        on_real = Kubectl(tmp_path, binary, control_plane.admin_kubeconfig)
        different = []
        for one in SCRIPT:
            ours, theirs = on_embedded(one), on_real(one)
            if one.shown and ours != theirs:
                different.append((one.line, ours, theirs))
    report = "\n".join(
        f"$ kubectl {line}\n--- embedded\n{ours}\n--- real\n{theirs}\n"
        for line, ours, theirs in different
    )
    shown = sum(one.shown for one in SCRIPT)
    print(f"{shown} commands compared, {len(different)} different\n{report}")
    unexpected = [line for line, *_ in different if line not in KNOWN]
    assert unexpected == [], report
    assert {line for line, *_ in different} == set(KNOWN)


class Kubectl:
    """The same binary for both, with the same surroundings."""

    def __init__(self, folder: Path, binary: Path, kubeconfig: Path) -> None:
        self._command = [
            str(binary),
            f"--kubeconfig={kubeconfig}",
            f"--cache-dir={folder / f'cache-{kubeconfig.stem}'}",
        ]
        editor = folder / "editor"
        editor.write_text("#!/bin/sh\nsed -i 's/a: b/a: edited/' \"$1\"\n")
        editor.chmod(0o755)
        self._env = {"HOME": str(folder), "PATH": os.defpath, "TZ": "UTC"}
        self._env["KUBE_EDITOR"] = str(editor)

    def __call__(self, one: Step) -> str:
        """What it prints, on both channels, masked."""
        done = subprocess.run(
            [*self._command, *shlex.split(one.line)],
            input=one.stdin,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        if not one.shown:
            assert done.returncode == 0, (one.line, done.stderr)
        return masked(f"{done.stdout}{done.stderr}")


MASKS = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
    (r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z\b", "<time>"),
    (r"\b\w{3}, \d\d \w{3} \d{4} [0-9:]{8} \+0000", "<time>"),
    (r"\bweb-[a-z0-9]{6,10}(-[a-z0-9]{5})?\b", "web-<hash>"),
    (r"\bonce-[a-z0-9]{5}\b", "once-<hash>"),
    (r"\bmoved-[a-z0-9]{6,10}(-[a-z0-9]{5})?\b", "moved-<hash>"),
    (r"pod-template-hash(=|: )\w+", r"pod-template-hash\1<hash>"),
    # After the names, because the end of a name may look like an age.
    (r"\b\d+(d|h|m|s)(\d+[hms])?\b", "<age>"),
    (r"resourceVersion: \"\d+\"", "resourceVersion: <version>"),
    (r"<age> +\(x\d+ over <age>\)", "<age>"),  # how often something was noticed
    (r"\b10\.\d+\.\d+\.\d+\b", "<ip>"),
    (r"/tmp/\S+", "<file>"),
    (r"\d{4}-\d\d-\d\d [0-9:.]+ \+0000", "<time>"),
    (r"(?<=Resource Version: )\s*\d+", "<version>"),
    (r"\d+ ms after it was first seen", "<duration> after it was first seen"),
    (r"[ \t]+", " "),
    (r"node-[12](?= <none>)", "<node>"),
)


def masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.mark.parametrize("suffix", ["x7k2p", "5d4h", "55d4h", "26d8h", "442s"])
def test_a_generated_name_is_masked_as_one_even_if_it_looks_like_an_age(suffix: str) -> None:
    row = masked(f"web-5d4f8b9c6d-{suffix.rjust(5, '9')} 1/1 Running 0 5d4h")
    assert row == "web-<hash> 1/1 Running 0 <age>"
    assert masked(f"pod-template-hash={suffix}") == "pod-template-hash=<hash>"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("version", "mcad.simulated"),
        ("cluster-info", "control plane is running at http://127.0.0.1:"),
        ("logs idle", "simulated pods run nothing"),
        ("exec idle -- ls", "the embedded cluster has no pods/exec; a real cluster has it"),
        ("top nodes", "Metrics API not available"),
        ("auth whoami", "is not enabled in the cluster"),
        ("auth can-i --list", "the embedded cluster has no selfsubjectrulesreviews"),
        ("create ingress i --rule=a/b=c:80", "the embedded cluster has no ingresses"),
        ("patch pod idle --type=json -p '[]'", "the embedded cluster reads no JSON patches"),
        ("get componentstatuses", "doesn't have a resource type"),
    ],
)
def test_what_is_not_there_is_said(idle: Kubectl, line: str, said: str) -> None:
    assert said in idle(step(line))


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """An embedded cluster with one pod that runs."""
    folder = tmp_path_factory.mktemp("embedded")
    binary = built_or_skip(binaries.ensure) / "kubectl"
    with Embedded(folder, "--nodes", "1") as embedded:
        kubectl = Kubectl(folder, binary, embedded.kubeconfig)
        kubectl(settle("wait --for=create serviceaccount/default --timeout=30s"))
        kubectl(settle("run idle --image=busybox"))
        kubectl(settle("wait --for=condition=Ready pod/idle --timeout=30s"))
        yield kubectl
