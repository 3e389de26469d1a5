"""A new user follows the README and the pages for beginners: in a HOME with empty caches all of
their commands are typed as they stand, and print what the pages say."""

from __future__ import annotations

import re
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip
from tests.documents.checkout import Checkout
from tests.documents.session import ROOT, blocks, run, steps

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs/start").glob("*.md")),
    ROOT / "docs/use/python.md",
]

ELSEWHERE = re.compile(r"(make test|minikube|kind|docker|helm|oc|kubectl rollout)\b")
"""How commands begin that need a container engine, a cluster with the image, or this test."""

NOT_TYPED = [
    "README.md: make test",
    "README.md: minikube image",
    "README.md: helm install",
    "kubernetes.md: minikube start",
    "kubernetes.md: minikube image",
    "kubernetes.md: helm install",
    "kubernetes.md: kind create",
    "kubernetes.md: docker build",
    "kubernetes.md: kind load",
    "kubernetes.md: helm install",
    "kubernetes.md: docker build",
    "kubernetes.md: docker push",
    "kubernetes.md: helm install",
    "kubernetes.md: kubectl rollout",
    "openshift.md: oc new-project",
    "openshift.md: helm install",
]
"""Every command of these pages that is not typed here. Workflows run `make test` on a new machine,
and tests/chart installs the chart on a real control plane."""


class Reader:
    """Types the commands of pages in a checkout."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self.not_typed: list[str] = []

    def follow(self, page: Path) -> None:
        """Type what a page says, in its order."""
        kubeconfig: Path | None = None
        with ExitStack() as clusters:
            for block in blocks(page):
                if block.cluster is not None:
                    clusters.close()
                    kubeconfig = clusters.enter_context(self._checkout.cluster(block.cluster))
                for step in steps(block):
                    if ELSEWHERE.match(step.command):
                        self.not_typed.append(f"{page.name}: {' '.join(step.command.split()[:2])}")
                        continue
                    if kubeconfig is None and step.command.startswith(
                        ("kubectl", "mcad", "python")
                    ):
                        kubeconfig = clusters.enter_context(self._checkout.cluster(""))
                    print(f"{page.name}: {step.command}")
                    run(step, partial(self._checkout.type, kubeconfig))


@pytest.mark.slow
def test_a_new_user_follows_the_readme_and_the_first_pages(tmp_path: Path) -> None:
    reader = Reader(Checkout(tmp_path, built_or_skip(binaries.ensure) / "kubectl"))
    for page in PAGES:
        reader.follow(page)
    assert reader.not_typed == NOT_TYPED
