"""Sequences that nobody thought of: seeded, so that a red one can be run again by its name."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.contract.objects import appwrapper, config_map, pod
from tests.contract.script import Later, Script, resolve, script

Json = dict[str, Any]

SEEDS = range(10)
STEPS = 45
NAMES = ("a", "b", "c")
OTHER_UID = "00000000-0000-0000-0000-000000000009"
MAKERS: dict[str, Callable[[str], Json]] = {
    "configmaps": config_map,
    "pods": pod,
    "appwrappers": appwrapper,
}


class Sequence:
    """Random requests; what an answer said is used later, whatever it was."""

    def __init__(self, s: Script, seed: int) -> None:
        self._s = s
        self._random = Random(seed)
        self._said: dict[str, list[Later]] = {}
        self._number = 0

    def step(self) -> None:
        kind = self._random.choice(list(MAKERS))
        path = f"{kind}/{self._random.choice(NAMES)}"
        act = self._random.choices(
            (
                self._create,
                self._put,
                self._patch,
                self._status,
                self._delete,
                self._get,
                self._delete_all,
            ),
            (6, 5, 6, 2, 5, 2, 0.3),
        )[0]
        self._number += 1
        answer = act(kind, path)
        self._said.setdefault(path, []).append(answer)

    def _label(self, text: str) -> str:
        return f"{self._number} {text}"

    def _metadata(self) -> Json:
        """Labels, annotations and finalizers, now and then."""
        some = self._random.random
        made: Json = {}
        if some() < 0.5:
            made["labels"] = {"x": self._random.choice("123")}
        if some() < 0.2:
            made["annotations"] = {"y": self._random.choice("123")}
        if some() < 0.3:
            made["finalizers"] = self._random.choice(
                (["example.com/a"], ["example.com/a", "example.com/b"], ["example.com/b"], [])
            )
        return made

    def _object(self, path: str) -> Json:
        kind, _, name = path.partition("/")
        made = MAKERS[kind](name)
        made["metadata"] |= self._metadata()
        if kind == "configmaps":
            made["data"] = {"k": self._random.choice("123")}
        elif kind == "appwrappers":
            made["spec"]["priority"] = self._random.randrange(3)
        elif self._random.random() < 0.5:
            made["spec"]["nodeName"] = "n"
        return made

    def _fence(self, path: str) -> Json:
        """What an earlier answer about this object said, be it fresh or not."""
        earlier = self._said.get(path)
        if not earlier or self._random.random() < 0.4:
            return {}
        said = earlier[-1] if self._random.random() < 0.6 else self._random.choice(earlier)
        fence: Json = {}
        if self._random.random() < 0.8:
            fence["resourceVersion"] = said.version.changed(lambda one: one or "")
        if self._random.random() < 0.3:
            fence["uid"] = said.uid.changed(lambda one: one or OTHER_UID)
        return fence

    def _params(self) -> Json:
        return {"dryRun": "All"} if self._random.random() < 0.08 else {}

    def _create(self, kind: str, path: str) -> Later:
        return self._s.post(self._label("create"), kind, self._object(path), **self._params())

    def _put(self, kind: str, path: str) -> Later:
        body: Any = self._object(path)
        body["metadata"] |= self._fence(path)
        if kind == "pods" and path in self._said:  # most of a pod's spec does not change
            body = self._kept(path, body)
        return self._s.put(self._label("put"), path, body, **self._params())

    def _kept(self, path: str, body: Json) -> Later:
        """The pod as it was last seen, with other metadata."""
        last = self._said[path][-1]

        def look_up(values: Any) -> Any:
            said, fresh = last.look_up(values), resolve(body, values)
            if not said or said.get("kind") != "Pod":
                return fresh | {"metadata": fresh["metadata"] | {"resourceVersion": "1"}}
            return said | {"metadata": said["metadata"] | fresh["metadata"]}

        return Later(look_up)

    def _patch(self, kind: str, path: str) -> Later:
        changes: Json = {"metadata": self._metadata() | self._fence(path)}
        if kind == "configmaps":
            changes["data"] = {self._random.choice("kl"): self._random.choice(("1", "2", None))}
        elif kind == "appwrappers":
            changes["spec"] = {"priority": self._random.randrange(3)}
        return self._s.patch(self._label("patch"), path, changes, **self._params())

    def _status(self, kind: str, path: str) -> Later:
        if kind == "configmaps":
            return self._get(kind, path)
        status = {
            "pods": {"phase": self._random.choice(("Running", "Succeeded", "Pending"))},
            "appwrappers": {"state": self._random.choice(("Running", "Failed"))},
        }[kind]
        changes = {"metadata": self._metadata() | self._fence(path), "status": status}
        return self._s.patch(self._label("status"), f"{path}/status", changes, **self._params())

    def _delete(self, kind: str, path: str) -> Later:
        options: Json = {}
        fence = self._fence(path)
        if fence:
            options["preconditions"] = dict(fence)
        if self._random.random() < 0.4:
            options["propagationPolicy"] = self._random.choice(
                ("Background", "Foreground", "Orphan")
            )
        if self._random.random() < 0.4:
            options["gracePeriodSeconds"] = self._random.choice((0, 40, 90))
        if self._random.random() < 0.08:
            options["dryRun"] = ["All"]
        return self._s.delete(self._label("delete"), path, options)

    def _get(self, kind: str, path: str) -> Later:
        return self._s.get(self._label("get"), path)

    def _delete_all(self, kind: str, path: str) -> Later:
        return self._s.delete(
            self._label("delete all"), kind, labelSelector=f"x={self._random.choice('123')}"
        )


def _record(seed: int) -> Callable[[Script], None]:
    def record(s: Script) -> None:
        start = {kind: s.get(f"{kind} before", kind) for kind in MAKERS}
        sequence = Sequence(s, seed)
        for _ in range(STEPS):
            sequence.step()
        for kind in MAKERS:
            s.get(f"{kind} after", kind)
            s.watch(f"{kind}: history", kind, resourceVersion=start[kind].version)

    record.__name__ = f"random_{seed}"
    return record


for _seed in SEEDS:
    script(_record(_seed))
