"""A cluster with a dispatcher, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import mcad
from tests.cli.embedded import Embedded


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """One node of 8 CPUs, with a dispatcher."""
    with Embedded(tmp_path_factory.mktemp("client")).running() as running:
        yield running


@pytest.fixture
def client(cluster: Embedded) -> Iterator[mcad.Client]:
    with mcad.Client(kubeconfig=str(cluster.kubeconfig)) as client:
        yield client
        for row in client.queue(all_namespaces=True, waiting_only=False):
            client.delete(f"{row.namespace}/{row.name}")
            client.wait(f"{row.namespace}/{row.name}", "deleted", timeout=20)
