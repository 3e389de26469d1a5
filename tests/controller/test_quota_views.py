"""Quota trees as JSON: figures, holders and queues."""

from __future__ import annotations

from typing import Any

from mcad.controller.quota_views import BOOKS, node_steps, trees_view
from mcad.controller.views import detail_view
from mcad.core.state.model import Workload
from mcad.core.views.rows import Picture
from tests.core.bench import Bench, node, workload
from tests.core.quotas import GOLD, SILVER, child, subtree, teams

Json = dict[str, Any]


def of(team: str, name: str, milli: int) -> Workload:
    return workload(name, milli, quota=((GOLD, team),))


def bench() -> Bench:
    """A full tree: ``red`` borrows 200m of ``blue``, which therefore waits for its own share."""
    made = Bench(nodes=[node(milli=100_000)])
    made.share(*teams(1000, red=400, blue=600))
    made.submit(of("red", "r1", 300), of("red", "r2", 300), of("blue", "b1", 400))
    made.settle()
    made.submit(of("blue", "b2", 100), of("red", "r3", 50))
    made.settle()
    return made


def trees(made: Bench) -> list[Json]:
    found: list[Json] = trees_view(made.dispatcher.cluster, enabled=True)["trees"]
    return found


def node_view(made: Bench, tree: str, name: str) -> Json | None:
    cluster = made.dispatcher.cluster
    steps = node_steps(cluster, Picture(cluster, made.now), tree, name)
    return next((view for view in steps if view is not None), None)


def one(made: Bench, name: str) -> Json:
    found = node_view(made, GOLD, name)
    assert found is not None
    return found


def test_a_tree_is_told_from_its_root_down_with_figures_that_add_up() -> None:
    (tree,) = trees(bench())

    figures = ("tree", "resources", "faults", "warnings")
    assert [tree[key] for key in figures] == [GOLD, ["cpu"], [], []]
    assert tree["nodes"] == [
        _node("root", "", ["root"], nominal="1", allocated="1", waiting="150m"),
        _node(
            "red", "root", ["red", "root"],
            nominal="400m", allocated="600m", borrowed="200m", waiting="50m",
        ),
        _node(
            "blue", "root", ["blue", "root"],
            nominal="600m", allocated="400m", lent="200m", waiting="100m",
        ),
    ]  # fmt: skip


def _node(name: str, parent: str, path: list[str], **cpu: str) -> Json:
    books: Json = {book: {} for book in BOOKS}
    node = {"node": name, "parent": parent, "path": path, "hardLimit": False, "leaf": bool(parent)}
    return node | books | {book: {"cpu": amount} for book, amount in cpu.items()}


def test_what_is_wrong_with_a_tree_is_told_with_its_object() -> None:
    made = bench()
    made.share(subtree("lost", child("x"), parent="nowhere"), subtree("s", child("s"), parent="t"))
    made.share(subtree("more", child("y"), parent="t", tree=SILVER))
    made.settle()
    gold, silver = trees(made)

    assert [(f["quotaSubtree"], f["node"], f["reason"]) for f in gold["faults"]] == [
        ("quota/lost", "x", "ParentMissing"),
        ("quota/s", "s", "ParentMissing"),
    ]
    assert (silver["nodes"], silver["resources"]) == ([], [])
    assert [fault["reason"] for fault in silver["faults"]] == ["NoRoot"]


def test_a_node_has_its_holders_and_its_queue() -> None:
    made = bench()
    red, root = one(made, "red"), one(made, "root")

    assert [(each["name"], each["leaf"], each["amounts"]) for each in red["holders"]] == [
        ("r1", "red", {"cpu": "300m"}),
        ("r2", "red", {"cpu": "300m"}),
    ]
    assert [(each["name"], each["waitsFor"]) for each in red["queue"]] == [("r3", "gold/root:cpu")]
    assert [each["name"] for each in root["holders"]] == ["b1", "r1", "r2"]
    assert [(each["name"], each["leaf"]) for each in root["queue"]] == [
        ("b2", "blue"),
        ("r3", "red"),
    ]
    assert red["borrowed"] == {"cpu": "200m"}


def test_an_appwrapper_with_an_unknown_leaf_is_in_the_queue_of_the_root() -> None:
    made = bench()
    made.submit(of("grene", "lost", 10))
    made.settle()
    assert [each["leaf"] for each in one(made, "root")["queue"]] == ["blue", "red", "grene"]
    assert [each["leaf"] for each in one(made, "red")["queue"]] == ["red"]


def test_an_appwrapper_without_a_resource_of_the_tree_is_no_holder() -> None:
    made = bench()
    made.submit(workload("disk", 0, quota=((GOLD, "red"),)))
    made.settle()
    assert made.state("disk") == "Running"
    assert [each["name"] for each in one(made, "red")["holders"]] == ["r1", "r2"]


def test_nodes_and_trees_that_do_not_exist() -> None:
    made = bench()
    for tree, name in ((GOLD, "purple"), (SILVER, "red")):
        assert node_view(made, tree, name) is None
    assert trees(Bench(nodes=[node()])) == []


def test_an_appwrapper_tells_its_path_and_the_figures_of_the_share_that_it_waits_for() -> None:
    made = bench()
    cluster = made.dispatcher.cluster
    waits, runs = (detail_view(cluster, made.now, "default", name) for name in ("b2", "r1"))
    assert waits is not None
    assert runs is not None

    (red,), (blue,) = runs["quota"], waits["quota"]
    assert (red["tree"], red["leaf"], red["path"]) == (GOLD, "red", ["red", "root"])
    assert (red["nominal"], red["allocated"]) == ({"cpu": "400m"}, {"cpu": "600m"})
    assert (blue["tree"], blue["leaf"], blue["path"]) == (GOLD, "blue", ["blue", "root"])
    assert waits["figures"] == [
        {"resource": "cpu", "requested": "100m", "available": "0", "missing": "100m"}
    ]
    assert waits["why"] == (
        'Quota tree "gold", node "root": cpu: 100m requested, 1 of 1 used. '
        "Borrowing there: red (200m)."
    )


def test_a_leaf_that_is_not_there_leads_nowhere() -> None:
    made = bench()
    made.submit(of("grene", "lost", 10))
    made.settle()
    view = detail_view(made.dispatcher.cluster, made.now, "default", "lost")
    assert view is not None
    nowhere = {"tree": GOLD, "leaf": "grene", "path": [], "nominal": {}, "allocated": {}}
    assert (view["quota"], view["figures"]) == ([nowhere], [])
