"""Verifies the certificates of random small clusters.

python -m tests.core.answers.certified [--clusters 100000] [--first 0]
"""

from __future__ import annotations

import argparse
from collections import Counter
from random import Random
from typing import Any

from mcad.controller.answer_views import certificate_view
from mcad.core.answers.certificate import certify
from mcad.core.answers.dry_run import Facts
from mcad.core.events import AppWrapperSeen, Event, NodeSeen, PodSeen, QuotaSeen
from mcad.core.nodes.resources import resources
from mcad.core.state.model import Constraint, Node, PodSet, Workload
from mcad.core.state.quota_records import QuotaChild
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND
from tests.core.answers.verifier import RejectedError, verify
from tests.core.answers.worlds import at_rest, gang, running
from tests.core.bench import PATIENT
from tests.core.builders import START, pod
from tests.core.quotas import subtree

Plain = dict[str, Any]

MI = 2**20


def plain(rng: Random) -> Plain:
    """A cluster of a few nodes with pods on them, and a gang that may or may not fit."""
    nodes = {}
    for number in range(rng.randint(1, 4)):
        has = {"cpu": rng.choice((1000, 2000)), "memory": rng.choice((512, 1024)) * MI, "pods": 5}
        labels = {"zone": rng.choice("ab")}
        nodes[f"n{number}"] = {"has": has, "labels": labels, "cordoned": rng.random() < 0.1}
    pods = []
    for _ in range(rng.randint(0, 5)):
        request = {"cpu": rng.choice((100, 300, 700)), "memory": rng.choice((64, 256)) * MI}
        pods.append((rng.choice(list(nodes)), request))
    sets = [_set(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
    tree = _tree(rng) if rng.random() < 0.3 else {}
    leaf = rng.choice(("red", "blue", "root", "nowhere")) if tree else ""
    held = [(rng.choice(("red", "blue")), rng.randint(1, 3)) for _ in range(2)] if tree else []
    return {"nodes": nodes, "pods": pods, "sets": sets, "tree": tree, "leaf": leaf, "held": held}


def _set(rng: Random) -> Plain:
    request = {"cpu": rng.choice((200, 300, 500, 900)), "memory": rng.choice((100, 200, 300)) * MI}
    selector = {"zone": rng.choice("ab")} if rng.random() < 0.3 else {}
    return {"pods": rng.randint(1, 4), "request": request, "selector": selector}


def _tree(rng: Random) -> Plain:
    def node(parent: str, cpu: int, hard: bool) -> Plain:
        return {"parent": parent, "nominal": {"cpu": cpu}, "hard": hard}

    return {
        "root": node("", rng.choice((1000, 3000)), False),
        "red": node("root", rng.choice((300, 900)), rng.random() < 0.5),
        "blue": node("root", rng.choice((300, 900)), rng.random() < 0.5),
    }


def facts_of(known: Plain) -> Facts:
    """What a dispatcher observes of it; ``w`` is the gang."""
    events: list[Event] = [NodeSeen(_node(name, one)) for name, one in known["nodes"].items()]
    for number, (where, request) in enumerate(known["pods"]):
        made = pod(f"p{number}", where)
        events.append(PodSeen(replace(made, request=resources(request))))
    if known["tree"]:
        children = {name: _child(name, one) for name, one in known["tree"].items()}
        events.append(QuotaSeen(subtree("root", children["root"])))
        events.append(QuotaSeen(subtree("teams", children["red"], children["blue"], parent="root")))
    for number, (leaf, count) in enumerate(known["held"]):
        # Its pods are on a node of their own, which admits no other.
        where = f"own-{number}"
        events.append(NodeSeen(replace(_node(where, OWN), unschedulable=True)))
        work = gang(f"h{number}", [(count, 100)], quota=(("gold", leaf),))
        events += running(work, [(0, where)] * count)
    events.append(AppWrapperSeen(_waiting(known), listed=True))
    return Facts(PATIENT, tuple(events), START + 1000 * SECOND)


OWN: Plain = {"has": {"cpu": 1000, "pods": 110}, "labels": {}, "cordoned": True}


def _node(name: str, one: Plain) -> Node:
    labels = tuple(sorted(one["labels"].items()))
    return Node(name, resources(one["has"]), unschedulable=one["cordoned"], labels=labels)


def _child(name: str, one: Plain) -> QuotaChild:
    return QuotaChild(name, tuple(one["nominal"].items()), one["hard"])


def _waiting(known: Plain) -> Workload:
    work = gang("w", [(one["pods"], 100) for one in known["sets"]])
    sets = [_pod_set(one, given) for one, given in zip(work.sets, known["sets"], strict=True)]
    quota = (("gold", known["leaf"]),) if known["tree"] else ()
    return replace(work, sets=tuple(sets), quota=quota)


def _pod_set(one: PodSet, given: Plain) -> PodSet:
    constraint = Constraint(selector=tuple(given["selector"].items()))
    return replace(one, request=resources(given["request"]), constraint=constraint)


def in_thousandths(known: Plain) -> Plain:
    """The cluster as the verifier reads it."""

    def scaled(amounts: dict[str, int]) -> dict[str, int]:
        return {name: n if name == "cpu" else n * 1000 for name, n in amounts.items()}

    nodes = {
        name: {**one, "allocatable": scaled(one["has"])} for name, one in known["nodes"].items()
    }
    return {
        "nodes": nodes,
        "pods": [(where, scaled(request)) for where, request in known["pods"]],
        "gang": [{**one, "request": scaled(one["request"])} for one in known["sets"]],
        "tree": known["tree"],
        "leaf": known["leaf"],
        "charges": [(leaf, {"cpu": 100 * count}) for leaf, count in known["held"]],
    }


def check(seed: int) -> str:
    """The proof and the judgement of the verifier, or ``fits``."""
    known = plain(Random(seed))
    cluster = at_rest(facts_of(known)).cluster
    entry = cluster.entries["uid-w"]
    refusal = cluster.waiting.queue.refusal_of(entry)
    if refusal is None:
        return "fits"
    view = certificate_view(certify(cluster, entry, refusal))
    if view is None:
        raise RejectedError(f"no certificate of {refusal.reason}")
    return f"{view['proof']}: {verify(in_thousandths(known), view)}"


def main() -> None:
    """Verify many and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    figures: Counter[str] = Counter()
    for seed in range(given.first, given.first + given.clusters):
        try:
            figures[check(seed)] += 1
        except RejectedError as error:
            print(f"cluster {seed}: {error}", flush=True)
            figures["rejected"] += 1
    for name, count in sorted(figures.items()):
        print(f"{name:24} {count:9,}")


if __name__ == "__main__":
    main()
