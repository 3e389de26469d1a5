"""Namespaces and CustomResourceDefinitions: what comes with them, and what goes with them."""

from __future__ import annotations

from tests.sim.worlds import virtually, world


@virtually
async def test_every_namespace_gets_an_account_and_the_root_certificates() -> None:
    async with world() as w:
        w.create("Namespace", {"metadata": {"name": "team"}})
        await w.settle()
        for namespace in ("default", "kube-system", "team"):
            assert w.get("ServiceAccount", "default", namespace)
            assert w.get("ConfigMap", "kube-root-ca.crt", namespace)

        w.delete("ServiceAccount", "default", "team")
        w.delete("ConfigMap", "kube-root-ca.crt", "team")
        await w.settle()
        assert w.get("ServiceAccount", "default", "team")
        assert w.get("ConfigMap", "kube-root-ca.crt", "team")


@virtually
async def test_a_namespace_may_come_again() -> None:
    async with world("n1") as w:
        for _ in range(2):
            w.create("Namespace", {"metadata": {"name": "team"}})
            w.pod("p", "team")
            await w.settle()
            assert w.get("ServiceAccount", "default", "team")
            w.delete("Namespace", "team")
            await w.settle()
            assert w.find("Namespace", "team") is None
