"""Namespaces and CustomResourceDefinitions: what comes with them, and what goes with them."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.sim.failures import Failure
from tests.sim.nodeside import condition, virtually, world
from tests.sim.test_gc import WIDGETS

Json = dict[str, Any]
CRD = "CustomResourceDefinition"
CRDS = "apiextensions.k8s.io/v1"


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
async def test_a_deleted_namespace_goes_after_all_that_was_in_it() -> None:
    async with world("n1") as w:
        w.create("Namespace", {"metadata": {"name": "team"}})
        w.create(CRD, WIDGETS, CRDS)
        w.create("Widget", {"metadata": {"name": "w", "namespace": "team"}}, "example.com/v1")
        w.pod("p", "team")
        await w.settle()
        w.delete("Namespace", "team")
        await w.settle(0.5)

        namespace = w.get("Namespace", "team")
        assert namespace["status"]["phase"] == "Terminating"
        assert w.find("Widget", "w", "team", "example.com/v1") is None
        with pytest.raises(Failure, match="because it is being terminated"):
            w.pod("q", "team")

        await w.settle()
        assert w.find("Namespace", "team") is None
        assert w.find("Pod", "p", "team") is None
        store = w.registry.store
        left = [
            kind.plural
            for kind in w.registry.kinds.all()
            if kind.namespaced and list(store.items(kind.storage, "team"))
        ]
        assert left == []


@virtually
async def test_a_finalizer_keeps_its_namespace() -> None:
    async with world() as w:
        w.create("Namespace", {"metadata": {"name": "team"}})
        body = {"metadata": {"name": "c", "namespace": "team", "finalizers": ["example.com/x"]}}
        w.create("ConfigMap", body)
        w.delete("Namespace", "team")
        await w.settle()
        assert w.get("Namespace", "team")["status"]["phase"] == "Terminating"

        kind = w.registry.kind("v1", "ConfigMap")
        w.registry.patch(
            kind,
            ("team", "c"),
            lambda one: one | {"metadata": one["metadata"] | {"finalizers": []}},
        )
        await w.settle()
        assert w.find("Namespace", "team") is None


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


@virtually
async def test_a_crd_goes_after_all_its_objects() -> None:
    async with world() as w:
        w.create(CRD, WIDGETS, CRDS)
        body = {"metadata": {"name": "kept", "finalizers": ["example.com/x"]}}
        w.create("Widget", body, "example.com/v1")
        w.create("Widget", {"metadata": {"name": "plain"}}, "example.com/v1")
        w.delete(CRD, "widgets.example.com", api=CRDS)
        await w.settle()
        assert w.find("Widget", "plain", api="example.com/v1") is None
        assert "deletionTimestamp" in w.get("Widget", "kept", api="example.com/v1")["metadata"]
        crd = w.get(CRD, "widgets.example.com", api=CRDS)
        assert condition(crd, "Terminating")["reason"] == "InstanceDeletionInProgress"

        w.registry.patch(
            w.registry.kind("example.com/v1", "Widget"),
            ("default", "kept"),
            lambda one: one | {"metadata": one["metadata"] | {"finalizers": []}},
        )
        await w.settle()
        assert w.find(CRD, "widgets.example.com", api=CRDS) is None
        assert w.registry.kinds.by_kind("example.com/v1", "Widget") is None


@virtually
async def test_a_crd_without_objects_goes_at_once_and_may_come_again() -> None:
    async with world() as w:
        for _ in range(2):
            w.create(CRD, WIDGETS, CRDS)
            w.delete(CRD, "widgets.example.com", api=CRDS)
            await w.settle(0.1)
            assert w.find(CRD, "widgets.example.com", api=CRDS) is None
