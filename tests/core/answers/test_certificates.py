"""Certificates: a verifier that knows nothing of the core accepts them, and no false ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mcad.controller.answer_views import certificate_view
from mcad.core.answers.certificate import Proof, certify
from tests.core.answers import certified, verifier
from tests.core.answers.worlds import at_rest

Json = dict[str, Any]


def test_certificates_of_random_clusters_are_accepted() -> None:
    figures = Counter(certified.check(seed) for seed in range(400))
    assert figures["rejected"] == 0
    for proof in (Proof.LEAF, Proof.QUOTA, Proof.SUM, Proof.SET, Proof.TOGETHER):
        assert figures[f"{proof}: accepted"] > 0, figures


def test_the_verifier_is_short_and_shares_nothing_with_the_core() -> None:
    text = Path(verifier.__file__).read_text()
    assert len(text.splitlines()) < 150
    assert "import mcad" not in text
    assert "from mcad" not in text


def _first(proof: Proof) -> tuple[Json, Json]:
    """A cluster as the verifier reads it, and its certificate."""
    for seed in range(1000):
        known = certified.plain(Random(seed))
        cluster = at_rest(certified.facts_of(known)).cluster
        entry = cluster.entries["uid-w"]
        refusal = cluster.waiting.queue.refusal_of(entry)
        view = refusal and certificate_view(certify(cluster, entry, refusal))
        if view and view["proof"] == proof:
            return certified.in_thousandths(known), view
    raise AssertionError(proof)


@pytest.mark.parametrize("proof", [Proof.SUM, Proof.SET, Proof.TOGETHER, Proof.QUOTA, Proof.LEAF])
def test_a_certificate_for_another_cluster_is_rejected(proof: Proof) -> None:
    """One in which the gang would fit: a pod of a thousandth of each amount, and no such tree."""
    known, view = _first(proof)
    assert verifier.verify(known, view) == "accepted"
    tiny = [one | {"pods": 0} for one in known["gang"]]
    tree = {known["leaf"] or "x": {"parent": "", "nominal": {}, "hard": False}}
    changed = known | {"gang": tiny, "tree": tree if proof is Proof.LEAF else known["tree"]}
    with pytest.raises(verifier.RejectedError):
        verifier.verify(changed, view)


def test_the_certificate_of_a_set_names_the_nodes_that_admit_it() -> None:
    """The node in zone b has room for all of them, and does not count."""
    known: Json = {
        "nodes": {
            "n0": {"has": {"cpu": 1000, "pods": 9}, "labels": {"zone": "a"}, "cordoned": False},
            "n1": {"has": {"cpu": 3000, "pods": 9}, "labels": {"zone": "b"}, "cordoned": False},
        },
        "pods": [],
        "sets": [
            {"pods": 2, "request": {"cpu": 900}, "selector": {"zone": "a"}},
            {"pods": 1, "request": {"cpu": 100}, "selector": {}},
        ],
        "tree": {},
        "leaf": "",
        "held": [],
    }
    cluster = at_rest(certified.facts_of(known)).cluster
    entry = cluster.entries["uid-w"]
    refusal = cluster.waiting.queue.refusal_of(entry)
    assert refusal is not None
    view = certificate_view(certify(cluster, entry, refusal))
    assert view is not None
    assert (view["proof"], view["requested"], view["available"]) == ("set", 2, 1)
    assert [one["name"] for one in view["nodes"]] == ["n0"]


def test_wrong_figures_of_a_node_are_rejected() -> None:
    known, view = _first(Proof.SUM)
    wrong = [one | {"free": {view["resource"]: "77m"}} for one in view["nodes"]]
    with pytest.raises(verifier.RejectedError):
        verifier.verify(known, view | {"nodes": wrong})
    with pytest.raises(verifier.RejectedError):
        verifier.verify(known, view | {"nodes": []})
