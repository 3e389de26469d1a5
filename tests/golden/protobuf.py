"""The numbers of protobuf fields, out of the Go types of the Kubernetes that the tests build.

Each field of ``k8s.io/api`` has its number and its JSON name in its tag::

    Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.controlplane.binaries import HERE, go

NUMBERS = Path(__file__).parents[2] / "mcad" / "sim" / "serving" / "protonumbers.txt"
HEAD = """\
# Written by `make golden`: the fields of protobuf messages, by number. They count from 1 on, and
# 4=name goes on from there. * marks what Go has behind a pointer, so that its zero is a value;
# + is a message whose fields are, in JSON, those of the message around it.
"""
_ROOTS = [
    *("core.v1.Binding", "core.v1.ConfigMap", "core.v1.Namespace", "core.v1.Node", "core.v1.Pod"),
    *("core.v1.ResourceQuota", "core.v1.Secret", "core.v1.Service", "core.v1.ServiceAccount"),
    *("apps.v1.DaemonSet", "apps.v1.Deployment", "apps.v1.ReplicaSet", "apps.v1.StatefulSet"),
    *("authorization.v1.SelfSubjectAccessReview", "autoscaling.v1.Scale", "batch.v1.CronJob"),
    *("batch.v1.Job", "coordination.v1.Lease", "events.v1.Event", "meta.v1.DeleteOptions"),
    *("policy.v1.PodDisruptionBudget", "rbac.v1.ClusterRole", "rbac.v1.ClusterRoleBinding"),
    *("rbac.v1.Role", "rbac.v1.RoleBinding", "scheduling.v1.PriorityClass"),
]
"""What kubectl and controllers write; what these consist of follows."""
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(
    r"^\t(?:\w+[ \t]+)?(\S+)[ \t]+`json:\"([^\",]*)[^\"]*\"[^`]*protobuf:\"\w+,(\d+),", re.MULTILINE
)
_IMPORT = re.compile(r"^\t(\w+) \"k8s\.io/(?:api/(\w+)|apimachinery/pkg/apis/(meta))/v1\"", re.M)


class Messages:
    """The messages of the version 1 of all groups, each read when it is needed."""

    def __init__(self) -> None:
        self._api, self._machinery = (_folder(one) for one in ("k8s.io/api", "k8s.io/apimachinery"))
        self._packages: dict[str, dict[str, list[tuple[int, str, str]]]] = {}

    def fields(self, message: str) -> list[tuple[int, str, str]] | None:
        """Number, type and JSON name of the fields of ``core.v1.Pod``; None if it is no message."""
        group, _, name = message.split(".")
        if group not in self._packages:
            self._packages[group] = self._read(group)
        return self._packages[group].get(name)

    def _read(self, group: str) -> dict[str, list[tuple[int, str, str]]]:
        where = self._machinery / "pkg/apis/meta" if group == "meta" else self._api / group
        text = (where / "v1" / "types.go").read_text()
        aliases = {alias: api or meta for alias, api, meta in _IMPORT.findall(text)}
        return {
            name: [
                (int(number), _qualified(kind, group, aliases), json)
                for kind, json, number in _FIELD.findall(body)
            ]
            for name, body in _STRUCT.findall(text)
        }


def _folder(module: str) -> Path:
    command = [go(), "list", "-m", "-f", "{{.Dir}}", module]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def _qualified(kind: str, group: str, aliases: dict[str, str]) -> str:
    """A Go type with the name of its message: ``*core.v1.PodSpec``, ``[]core.v1.Container``."""
    start, bare = re.fullmatch(r"((?:\*|\[\]|map\[\w+\])*)(.*)", kind).groups()  # type: ignore[union-attr]
    package, dot, name = bare.rpartition(".")
    if not dot:
        return f"{start}{group}.v1.{bare}"
    return f"{start}{aliases[package]}.v1.{name}" if package in aliases else f"{start}{bare}"


def table() -> str:
    """The whole file."""
    messages, found, todo = Messages(), {}, list(_ROOTS)
    while todo:
        message = todo.pop()
        if message in found or message.count(".") != 2:
            continue
        fields = messages.fields(message)
        if fields is not None:
            found[message] = fields
            todo += [kind.rpartition("]")[2].lstrip("*") for _, kind, _ in fields]
    lines = (" ".join([f"{message}:", *_words(found[message])]) for message in sorted(found))
    return HEAD + "".join(f"{line}\n" for line in lines)


def _words(fields: list[tuple[int, str, str]]) -> Iterator[str]:
    last = 0
    for number, kind, json in sorted(fields):
        name = json or f"+{kind.lstrip('*')}"
        star = "*" if kind.startswith("*") and json else ""
        yield f"{name}{star}" if number == last + 1 else f"{number}={name}{star}"
        last = number
