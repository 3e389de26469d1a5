"""``-o jsonpath``, ``-o custom-columns``, ``--state``, ``--reason`` and ``--limit`` of lists."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcad.cli.main import main
from mcad.cli.pages.jsonpath import JsonPathError, evaluate, parse_template
from tests.cli.cluster import crowd
from tests.cli.conftest import FakeEnvironment
from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip

Say = Callable[..., Result]

ROOT = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "name": "a",
            "n": 1,
            "map": {"x.y": "dot", "z w": [1, 2, 3]},
            "on": True,
            "tags": ["p", "q"],
        },
        {"name": "b", "n": 25, "map": {}, "on": False, "tags": []},
        {"name": "it's", "n": 3, "map": {"deep": {"er": "value"}}},
    ],
}

TEMPLATES = {
    "{.items[*].name}": "a b it's",
    ".items[0].name": "a",
    "{$.items[0].name}": "a",
    "{.items[-1].name}": "it's",
    "{.items[0:2].name}": "a b",
    "{.items[1:].n}": "25 3",
    "{.items[:1].n}": "1",
    "{.items[0].map.x\\.y}": "dot",
    "{.items[0].map['x.y']}": "dot",
    "{.items[0].map['z w'][1]}": "2",
    "{.items[0].tags}": '["p","q"]',
    "{.items[*].on}": "true false",
    "{.items[0].tags[*]}": "p q",
    "{.items[?(@.n==25)].name}": "b",
    '{.items[?(@.name=="b")].n}': "25",
    "{.items[?(@.n>1)].name}": "b it's",
    "{.items[?(@.n!=25)].n}": "1 3",
    "{.items[?(@.on==true)].name}": "a",
    "{.items[?(@.on)].name}": "a b",
    "{.items[?(@.map.deep.er=='value')].n}": "3",
    "{.nothing}": "",
    "name: {.items[0].name}!": "name: a!",
    '{range .items[*]}{.name}{"\\t"}{.n}{"\\n"}{end}': "a\t1\nb\t25\nit's\t3\n",
    "{range .items[*]}{range .tags[*]}<{@}>{end};{end}": "<p><q>;;;",
    "{.kind}": "List",
}


OF_OURS = (".items[0].name", "{.items[0].map['x.y']}", "{.items[0].map['z w'][1]}")
"""Templates that kubectl reads in another way: no braces, dots and blanks in quotes."""


def test_kubectl_prints_the_same(tmp_path: Path) -> None:
    """``label --local`` prints an object of a file without a server; ``items`` would be a list."""
    kubectl = built_or_skip(binaries.ensure) / "kubectl"
    renamed = {"rows" if key == "items" else key: value for key, value in ROOT.items()}
    path = tmp_path / "x.json"
    obj = renamed | {"apiVersion": "example.com/v1", "metadata": {"name": "x"}}
    path.write_text(json.dumps(obj))
    texts = [text.replace("items", "rows") for text in TEMPLATES if text not in OF_OURS]
    whole = "{'|'}".join(texts)
    command = [kubectl, "label", "--local", "-f", path, "x=y", "-o", f"jsonpath={whole}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split("|") == [evaluate(parse_template(text), obj) for text in texts]


@pytest.mark.parametrize("text", TEMPLATES)
def test_jsonpath(text: str) -> None:
    assert evaluate(parse_template(text), ROOT) == TEMPLATES[text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{..name}", "'..name': recursive descent (..) is not supported"),
        ("{.items[0]['name','n']}", "a union of keys or indexes is not supported"),
        ("{.items[a]}", "'[a]' is not a key, an index"),
        ("{range .items[*]}x", "{range} has no {end}"),
        ("x{end}", "{end} has no {range}"),
        ("{.a", "has a brace without its partner"),
        ("{.items[?(@.a=b)]}", "write one comparison"),
        ("{.items[?(@.a==b)]}", "'b' is not a value: put texts into quotes"),
        ("{.items[::2]}", "is not a key, an index"),
        ("{.items[]}", "'[]' has no index"),
        ('{"\\x"}', "is not a text in quotes"),
    ],
)
def test_what_is_not_understood_is_named(text: str, words: str) -> None:
    with pytest.raises(JsonPathError) as caught:
        parse_template(text)
    assert words in str(caught.value)


# -- at the cluster of the golden sessions ---------------------------------------------------


@pytest.fixture
def say() -> Say:
    world = FakeEnvironment(crowd())
    return lambda *args: CliRunner().invoke(main, args, obj=world, env={"COLUMNS": "120"})


def test_rows_as_templates_say(say: Say) -> None:
    result = say("queue", "-A", "-o", "jsonpath={.items[0].namespace}/{.items[0].name}{'\\n'}")
    assert (result.exit_code, result.output) == (0, "team-a/urgent\n")
    result = say("get", "fits", "suspended", "-o", "custom-columns=N:.name,P:.position,X:.none")
    assert result.stdout.splitlines() == ["N           P   X", "fits        4   <none>", SUSPENDED]
    assert result.stderr == "warning: no row has .none.\n"
    result = say("get", "fits", "--no-headers", "-o", "custom-columns=D:{.demand.cpu}")
    assert result.output == "500m\n"


SUSPENDED = "suspended   0   <none>"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ("-o", "jsnpath=x"),
            "json, yaml, wide, name, jsonpath=TEMPLATE, custom-columns=TITLE:.path",
        ),
        (("-o", "jsnpath=x"), 'Did you mean "jsonpath"?'),
        (("-o", "jsonpath={..a}"), "recursive descent (..) is not supported"),
        (
            ("-o", "custom-columns=NAME"),
            "'NAME' is not a column: write TITLE:.path, as in NAME:.name",
        ),
        (("-o", "custom-columns=A:.b[x]"), "'[x]' is not a key"),
        (
            ("-w", "-o", "jsonpath={.a}"),
            "--watch excludes --limit, -o jsonpath and -o custom-columns",
        ),
        (("-w", "--limit", "2"), "--watch excludes --limit"),
        (("--state", "Runing"), "'Runing' is not one of"),
        (("--limit", "0"), "0 is not in the range"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage(say: Say, args: tuple[str, ...], words: str) -> None:
    result = say("get", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "names", "told"),
    [
        (("queue", "--reason", "suspended"), ["suspended"], ""),
        (("queue", "--reason", "memory", "--reason", "Suspended"), ["no-memory", "suspended"], ""),
        (("queue", "--reason", "insufficient"), ["fragmented", "no-memory"], ""),
        (("get", "--state", "pending", "--limit", "2"), ["fragmented", "fits"], "5 more are not"),
        (("get", "--state", "Running"), [], "found in namespace default with state Running."),
        (("queue", "--reason", "Suspnded"), [], 'Suspnded. Did you mean "Suspended"?'),
        (("get", "fits", "--reason", "cpu"), [], "with reason cpu."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_filters(say: Say, args: tuple[str, ...], names: list[str], told: str) -> None:
    result = say(*args, "-o", "jsonpath={.items[*].name}")
    assert result.exit_code == 0
    assert result.stdout.split() == names
    assert told in result.stderr
    assert bool(result.stderr) is bool(told)
