"""``mcad demo quota``: how three teams share a cluster, with the files of samples/quota."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mcad.cli.commands.quota_show import rows_of, titles
from mcad.cli.demo_cluster.tutorial import DemoFailedError, DemoSteps
from mcad.cli.demo_cluster.tutorial_objects import NAMESPACE
from mcad.cli.pages.quota import page
from mcad.cli.pages.tables import table
from mcad.kube.kinds import APPWRAPPERS, OLD_APPWRAPPERS

Json = dict[str, Any]

NODE, NODE_CPU, NODE_MEMORY = "node-1", "16", "64Gi"
TREE = "teams"
RESEARCH, BORROWER, OPS, PRODUCT = "aw-research", "aw-borrower", "aw-ops", "aw-product"
UNKNOWN_LEAF = "aw-unknown-leaf"


def subtrees() -> list[Json]:
    """samples/quota/teams.yaml: a root with 8 CPUs, and three teams under it."""
    return [
        _subtree("cluster", {}, [_child("cluster", 8)]),
        _subtree(
            "teams",
            {"parent": "cluster"},
            [
                _child("research", 4),
                _child("product", 3),
                _child("ops", 1, hardLimit=True),
                {"name": "default"},
            ],
        ),
    ]


def _subtree(name: str, parent: Json, children: list[Json]) -> Json:
    return {
        "apiVersion": "quota.codeflare.dev/v1alpha1",
        "kind": "QuotaSubtree",
        "metadata": {"name": name, "labels": {"tree": TREE}},
        "spec": {**parent, "children": children},
    }


def _child(name: str, cpu: int, **more: bool) -> Json:
    return {"name": name, "quotas": {**more, "requests": {"cpu": cpu}}}


def appwrapper(name: str, leaf: str, pods: int) -> Json:
    """One of the Deployments in samples/quota: that many pods with a CPU each."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [_container("infinity")]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": pods, "selector": {"matchLabels": labels}, "template": template},
    }
    return {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name, "labels": {TREE: leaf}},
        "spec": {"resources": {"GenericItems": [{"generictemplate": deployment}]}},
    }


def lost() -> Json:
    """samples/quota/aw-unknown-leaf.yaml."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": UNKNOWN_LEAF},
        "spec": {"restartPolicy": "Never", "containers": [_container("10")]},
    }
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": UNKNOWN_LEAF, "labels": {TREE: "reserch"}},
        "spec": {"components": [{"template": pod}]},
    }


def _container(seconds: str) -> Json:
    return {
        "name": "main",
        "image": "busybox:1.36",
        "command": ["sleep", seconds],
        "resources": {"requests": {"cpu": 1}},
    }


class QuotaDemo(DemoSteps):
    """The tour in five steps."""

    async def run(self) -> None:
        """Run all steps in order; raises ``DemoFailedError``."""
        await self._show_tree()
        await self._borrow()
        await self._late()
        await self._misspelt()
        await self._give_back()

    async def _show_tree(self) -> None:
        self._step(
            f"1/5  A node with {NODE_CPU} CPUs, and a quota tree that gives 8 to three teams",
            "research has 4, product 3 and ops 1. Teams may borrow the idle quota of other teams;",
            "ops has a hard limit and borrows nothing. Nothing runs yet.",
        )
        self._lines(await self._tree())
        await self._pause()

    async def _borrow(self) -> None:
        self._step(
            f"2/5  Submit {RESEARCH}, {BORROWER} and {OPS}",
            "The label `teams: research` names the team. The first AppWrapper uses all 4 CPUs of",
            "research. The second is of research, too, and borrows 2 idle CPUs of product.",
            "The one of ops uses its 1.",
        )
        for name, leaf, pods in (
            (RESEARCH, "research", 4),
            (BORROWER, "research", 2),
            (OPS, "ops", 1),
        ):
            await self._submit(appwrapper(name, leaf, pods))
            await self._expect(f"{name} runs", self._is(name, "Running"))
        self._lines(await self._tree())
        await self._pause()

    async def _late(self) -> None:
        self._step(
            f"3/5  Submit {PRODUCT}",
            "product requests its 3 CPUs, of which research borrows 2. The node has 9 free, the",
            "tree has 1: so it waits. Its status names the node of the tree and the borrower.",
        )
        await self._submit(appwrapper(PRODUCT, "product", 3))
        await self._expect("the one of product waits", self._refused(PRODUCT, "research (2)"))
        await self._say_why(PRODUCT)
        self._lines(await self._node("product"))
        await self._pause()

    async def _misspelt(self) -> None:
        self._step(
            f"4/5  Submit {UNKNOWN_LEAF}",
            "Its label is `teams: reserch`. There is no such leaf, so it waits until there is one,",
            "without blocking others, and its status suggests a similar name.",
        )
        await self._client.create(APPWRAPPERS, NAMESPACE, lost())
        await self._expect(
            "the misspelt one waits", self._refused(UNKNOWN_LEAF, 'Did you mean "research"?')
        )
        await self._say_why(UNKNOWN_LEAF)
        await self._pause()

    async def _give_back(self) -> None:
        self._step(
            f"5/5  Delete {BORROWER}",
            "What it borrowed is free as soon as its pods are gone, and product gets its quota.",
        )
        await self._client.delete(APPWRAPPERS, NAMESPACE, BORROWER)
        await self._expect(f"{PRODUCT} runs", self._is(PRODUCT, "Running"))
        if await self._state(UNKNOWN_LEAF) != "Pending":
            raise DemoFailedError("an AppWrapper without a leaf was dispatched")
        self._lines(await self._tree())

    # -- promises ------------------------------------------------------------------------------

    def _is(self, name: str, state: str) -> Any:
        async def holds() -> bool:
            return await self._state(name) == state

        return holds

    def _refused(self, name: str, words: str) -> Any:
        async def holds() -> bool:
            return words in await self._message(name)

        return holds

    async def _state(self, name: str) -> str:
        return str((await self._status(name)).get("state", ""))

    async def _message(self, name: str) -> str:
        conditions = (await self._status(name)).get("conditions") or []
        messages = [one.get("message", "") for one in conditions if one["type"] == "Backoff"]
        return str(messages[0]) if messages else ""

    async def _submit(self, obj: Json) -> None:
        await self._client.create(OLD_APPWRAPPERS, NAMESPACE, obj)

    # -- looks ---------------------------------------------------------------------------------

    async def _say_why(self, name: str) -> None:
        self._output.say(f"    `kubectl describe appwrapper {name}` says:")
        for sentence in (await self._message(name)).replace(". ", ".\n").split("\n"):
            self._output.say(f"      {sentence}")
        self._output.say("")

    async def _tree(self) -> Iterable[str]:
        view = json.loads(await self._figures.quota())
        rows = [row for tree in view["trees"] for row in rows_of(tree, wide=False)]
        return ["$ mcad quota", *table(titles(wide=False), rows, palette=self._output.palette)]

    async def _node(self, node: str) -> Iterable[str]:
        view = await self._figures.quota_node(TREE, node)
        if view is None:
            raise DemoFailedError(f"there is no node {node}")
        return [f"$ mcad quota {node}", *page(view, self._output.palette, wide=False)]
