"""``mcad quota``: names, rights, and rows as they change."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.cli.conftest import Type
from tests.cli.shares import shares, subtree, trees
from tests.cli.test_watch import typed_at
from tests.fakeapi import FakeApi, answer
from tests.serving import answering, served

Json = dict[str, Any]
Check = Callable[..., Result]


@pytest.fixture
def api() -> FakeApi:
    return shares()


# -- what a name means ---------------------------------------------------------------------------


def test_a_tree_wins_over_a_node_of_its_name_and_the_node_has_a_way_to_be_said(
    api: FakeApi, mcad: Type
) -> None:
    api.put("quotasubtrees", subtree("more", "cluster", teams="0"))
    assert "TREE" in mcad("quota", "teams").stdout
    assert mcad("quota", "teams/teams").stdout.startswith(
        "Node:         teams\nTree:         teams"
    )


def test_a_node_of_several_trees_has_to_be_told_apart(api: FakeApi, mcad: Type) -> None:
    other = subtree("other", "", research="1")
    other["metadata"]["labels"]["tree"] = "gold"
    api.put("quotasubtrees", other)
    result = mcad("quota", "research")
    assert result.exit_code == 2
    assert "write one of gold/research, teams/research" in result.stderr
    assert mcad("quota", "gold/research").exit_code == 0


def test_a_tree_that_is_called_like_a_command_can_be_shown(mcad: Type) -> None:
    assert mcad("quota", "show", "teams").stdout == mcad("quota", "teams").stdout


def test_what_does_not_count_is_told_beside_the_tree(api: FakeApi, mcad: Type) -> None:
    api.put("quotasubtrees", subtree("far", "nowhere", lonely="1"), subtree("two", "ops", a="2"))
    result = mcad("quota", "teams")
    assert result.exit_code == 0
    assert 'warning: quota/far: node "lonely" does not count: ' in result.stderr
    assert "warning: tree teams: The shares below" in result.stderr
    assert "lonely" not in result.stdout


# -- without a dispatcher -------------------------------------------------------------------------


@pytest.fixture
def unled(api: FakeApi) -> FakeApi:
    api.objects["leases"].clear()
    return api


def test_the_figures_that_the_dispatcher_wrote_are_shown(unled: FakeApi, mcad: Type) -> None:
    result = mcad("quota", "-o", "json")
    assert result.stderr.startswith("warning: the dispatcher does not answer")
    assert len(result.stderr.splitlines()) == 1
    (tree,) = json.loads(result.stdout)["trees"]
    used = {node["node"]: (node["path"], node["allocated"]) for node in tree["nodes"]}
    assert used == {
        "cluster": (["cluster"], {"cpu": "7"}),
        "research": (["research", "cluster"], {"cpu": "6"}),
        "product": (["product", "cluster"], {}),
        "ops": (["ops", "cluster"], {}),
        "default": (["default", "cluster"], {}),
    }


def test_who_holds_the_quota_of_a_node_is_not_stored(unled: FakeApi, mcad: Type) -> None:
    result = mcad("quota", "ops")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "the holders and the queue of teams/ops are not stored: the dispatcher" in result.stderr


def test_figures_that_are_not_in_the_status_are_unknown(unled: FakeApi, mcad: Type) -> None:
    unled.change("quotasubtrees", "teams", lambda obj: obj["status"].update(children=[]))
    lines = mcad("quota", "--no-headers").stdout.splitlines()
    assert lines[0].split() == ["teams", "cluster", "cpu", "8", "7", "0", "0", "0", "0", "0"]
    assert lines[1].split()[:4] == ["teams", "research", "cpu", "4"]
    assert lines[1].split()[4:] == ["<unknown>"] * 6


def test_trees_of_which_no_dispatcher_wrote_are_no_quota(unled: FakeApi, mcad: Type) -> None:
    unled.objects["quotasubtrees"].clear()
    unled.put("quotasubtrees", *trees())
    result = mcad("quota")
    assert result.exit_code == 1
    assert "no dispatcher has written the status of a QuotaSubtree" in result.stderr


def test_a_caller_without_the_right_to_list_trees_gets_advice(unled: FakeApi, mcad: Type) -> None:
    unled.deny("quotasubtrees")
    result = mcad("quota")
    assert result.exit_code == 1
    assert (
        "you may not list quotasubtrees.quota.codeflare.dev in the whole cluster" in result.stderr
    )
    assert "ask an administrator for this right" in result.stderr


# -- the dispatcher itself -----------------------------------------------------------------------


def test_a_dispatcher_is_asked_for_the_trees_and_for_a_node(mcad: Type) -> None:
    view = json.loads(mcad("quota", "-o", "json").stdout)
    node = json.loads(mcad("quota", "ops", "-o", "json").stdout)
    dispatcher = FakeApi()
    dispatcher.fail_always("GET", "quota$", answer(view | {"enabled": True}))
    dispatcher.fail_always("GET", "quota/", answer(node))
    with served(dispatcher) as url:
        assert mcad("quota", "--server", url).stdout == mcad("quota").stdout
        assert mcad("quota", "ops", "--server", url).stdout == mcad("quota", "ops").stdout
    asked = [one.path for one in dispatcher.requests]
    assert asked == ["/api/v1/quota", "/api/v1/quota", "/api/v1/quota/teams/ops"]


@pytest.mark.parametrize(
    ("view", "code", "words"),
    [
        ({"enabled": False, "trees": []}, 1, "set its quotaEnabled to true"),
        ({"enabled": True, "trees": []}, 1, "there is no quota tree"),
        ({"items": []}, 1, "is not an mcad dispatcher (no quota trees)"),
    ],
)
def test_a_dispatcher_without_trees(view: Json, code: int, words: str, mcad: Type) -> None:
    async def dispatcher(_: Any) -> Any:
        return answer(view)

    with answering(dispatcher) as url:
        result = mcad("quota", "--server", url)
    assert result.exit_code == code
    assert words in result.stderr


# -- as it changes -------------------------------------------------------------------------------


def test_a_row_is_printed_again_when_a_figure_of_it_changes(tmp_path: Path) -> None:
    api = shares()
    with typed_at(api, tmp_path, "quota", "--watch") as process:
        process.wait_for(lambda: len(process.lines) == 6)
        api.change("quotasubtrees", "teams", _less_for_product)
        process.wait_for(lambda: len(process.lines) == 7)
        assert process.lines[-1].split() == [
            "teams",
            "product",
            "cpu",
            "2",
            "0",
            "0",
            "0",
            "0",
            "1",
            "3",
        ]
        assert process.end() == 130


def _less_for_product(obj: Json) -> None:
    product = obj["spec"]["children"][1]
    assert product["name"] == "product"
    product["quotas"]["requests"]["cpu"] = "2"


# -- files ---------------------------------------------------------------------------------------


def write(folder: Path, *objects: Any, name: str = "quota.yaml") -> str:
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


@pytest.fixture
def check(mcad: Type, tmp_path: Path) -> Check:
    """``mcad quota check`` of a file with these objects."""
    return lambda objects, *options: mcad(
        "quota", "check", *options, "-f", write(tmp_path, *objects)
    )


def test_a_good_forest_is_told_in_one_line_per_tree(check: Check) -> None:
    result = check(trees())
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["TREE", "NODES", "LEAVES", "ROOT"],
        ["teams", "5", "research,product,ops,default", "cpu=8"],
    ]


def test_evictions_are_told_before_they_happen(check: Check) -> None:
    result = check(trees(), "--against-cluster")
    assert (result.exit_code, result.stderr) == (0, "")
    title, header, row = result.stdout.splitlines()[3:]
    assert title == "1 eviction:"
    assert header.split() == ["APPWRAPPER", "REASON", "FOR", "AFTER"]
    assert row.split()[:3] == ["default/borrower", "Reclaiming", "default/late"]
    assert row.split()[3].startswith("3m"), "its minimum run time ends then"


def test_where_shares_suffice_no_eviction_is_foreseen(check: Check) -> None:
    root, _ = trees()
    teams = subtree("teams", "cluster", research="6", product="1", ops="1", default="0")
    result = check([root, teams], "--against-cluster")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "No AppWrapper would be evicted."


def test_files_directories_lists_and_standard_input_are_one_forest(
    mcad: Type, tmp_path: Path
) -> None:
    root, teams = trees()
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder, {"kind": "List", "items": [teams]}, {"kind": "ConfigMap"}, name="b.yml")
    (folder / "notes.txt").write_text("not YAML: : :")
    both = mcad("quota", "check", "-f", str(folder), "-f", "-", stdin=json.dumps(root))
    assert (both.exit_code, both.stderr) == (0, "")
    alone = mcad("quota", "check", "-f", str(folder))
    assert alone.exit_code == 1
    assert 'spec.parent: Tree "teams" has no root' in alone.stderr


def broken(change: Any) -> list[Json]:
    """The good forest with one thing changed in the second object."""
    objects = trees()
    change(objects[1])
    return objects


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        (lambda o: o["spec"].update(parent="clutser"), "spec.parent", 'Did you mean "cluster"?'),
        (
            lambda o: o["spec"].update(parent="ops"),
            "spec.parent",
            'hangs under "ops", which leads back to "ops".',
        ),
        (
            lambda o: o["spec"]["children"][0].update(name="cluster"),
            "spec.children[0].name",
            '"cluster" of quota/teams is defined in quota/cluster already; rename one of them.',
        ),
        (
            lambda o: o["spec"].pop("parent"),
            "spec.parent",
            '"cluster" of quota/cluster is the root of tree "teams"; it can have no other.',
        ),
        (
            lambda o: o["spec"]["children"][1]["quotas"]["requests"].update(cpu="-1"),
            "spec.children[1].quotas.requests",
            "cpu: '-1' is negative.",
        ),
        (
            lambda o: o["spec"]["children"][1]["quotas"]["requests"].update(cpu="3 cores"),
            "spec.children[1].quotas.requests",
            "cpu: '3 cores' is not a quantity",
        ),
        (lambda o: o["spec"]["children"][1].pop("name"), "spec.children[1]", "name: is required"),
        (
            lambda o: o["spec"]["children"][1]["quotas"].update(hardLimits=True),
            "spec.children[1].quotas.hardLimits",
            'is unknown. Did you mean "hardLimit"?',
        ),
        (lambda o: o["spec"].update(owner="x"), "spec.owner", "is unknown. Remove it."),
        (
            lambda o: o["spec"]["children"][1]["quotas"].update(hardLimit="yes"),
            "spec.children[1].quotas.hardLimit",
            "must be true or false, not the string 'yes'.",
        ),
        (lambda o: o["metadata"].pop("labels"), "metadata.labels.tree", "is required"),
        (
            lambda o: o["metadata"]["labels"].update(tree="my tree"),
            "metadata.labels.tree",
            "is not a valid label value",
        ),
        (lambda o: o["metadata"].pop("name"), "metadata.name", "is required."),
        (lambda o: o.update(apiVersion="ibm.com/v1"), "apiVersion", "no longer served"),
        (lambda o: o.update(sepc={}), "sepc", 'Did you mean "spec"?'),
        (lambda o: o.pop("spec"), "spec", "is required, with parent and children."),
    ],
)
def test_a_fault_names_file_object_field_and_remedy(
    change: Any, field: str, words: str, mcad: Type, tmp_path: Path
) -> None:
    path = write(tmp_path, *broken(change))
    result = mcad("quota", "check", "-f", path)
    faults = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert result.exit_code == 1
    told = next(line for line in faults if f": {field}: " in line)
    assert told.startswith(f"error: {path}, document 2: quota/")
    assert words in told
    assert faults[-1].endswith("to correct before these are applied")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda o: o["spec"]["children"][1]["quotas"]["requests"].update(cpu="4"),
            'spec.children: The shares below "cluster" come to more than its own (cpu: 9 of 8)',
        ),
        (lambda o: o["spec"]["children"].pop(), 'tree "teams" has no leaf "default"'),
        (lambda o: o["spec"]["children"][1]["quotas"].update(disabled=True), "has no effect"),
        (lambda o: o["spec"]["children"][1].update(name="two words"), "no AppWrapper can name it"),
    ],
)
def test_what_may_not_be_meant_is_a_warning(change: Any, words: str, check: Check) -> None:
    result = check(broken(change))
    assert result.exit_code == 0
    assert words in result.stderr
    assert all(line.startswith("warning: ") for line in result.stderr.splitlines())


def test_a_fault_of_a_whole_object_is_told_once(mcad: Type, tmp_path: Path) -> None:
    path = write(tmp_path, *broken(lambda o: o["spec"].update(parent="nowhere")))
    result = mcad("quota", "check", "-f", path)
    assert result.stderr.count("no node of tree") == 1


def test_one_object_in_two_files_is_told_with_both(mcad: Type, tmp_path: Path) -> None:
    first = write(tmp_path, *trees(), name="a.yaml")
    second = write(tmp_path, trees()[1], name="b.yaml")
    result = mcad("quota", "check", "-f", str(tmp_path))
    assert (
        f"{second}: quota/teams: metadata.name: the same object is already in {first}"
        in result.stderr
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"kind": "ConfigMap"}], "there is no QuotaSubtree in"),
        ([{"kind": "QuotaSubTree"}], "kind is QuotaSubTree: write QuotaSubtree"),
    ],
)
def test_files_without_any(content: Any, words: str, check: Check) -> None:
    result = check(content)
    assert result.exit_code == 1
    assert words in result.stderr


def test_a_directory_without_manifests(mcad: Type, tmp_path: Path) -> None:
    assert "there is no file that ends in" in mcad("quota", "check", "-f", str(tmp_path)).stderr


# -- what deleted AppWrappers hold ----------------------------------------------------------------
