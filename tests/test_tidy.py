"""Rules of the house that protect determinism; the direction of imports is import-linter's."""

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = sorted((ROOT / "mcad" / "core").rglob("*.py"))
SOURCES = sorted((ROOT / "mcad").rglob("*.py"))


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


BANNED_CALLS = {
    "hash": "depends on the hash seed; use a key of the record",
    "id": "depends on memory; use a uid or a counter",
    "print": "the core has no output; emit a command",
    "open": "the core has no files",
}


SEQUENCES = ("tuple", "list", "dict.fromkeys", "iter", "enumerate", "zip", "map")


def _calls(tree: ast.AST) -> list[tuple[str, int]]:
    """Calls by plain names. ``__hash__`` itself may ask for hashes: a dict has no order of them."""
    hashing = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "__hash__")
    excused = {node for function in hashing for node in ast.walk(function)}
    return [
        (node.func.id, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node not in excused
    ]


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("set", "frozenset")
    )


def _set_iterations(tree: ast.AST) -> list[int]:
    """Loops and sequences whose order is that of a set written in place."""
    ordered = [n.iter for n in ast.walk(tree) if isinstance(n, ast.For | ast.comprehension)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SEQUENCES:
            ordered += node.args
    return [node.lineno for node in ordered if _is_set(node)]


def _in_the_core(find: Callable[[ast.Module], list[str]]) -> dict[str, list[str]]:
    """What is found in modules of the core, by their names."""
    return {path.name: found for path in CORE if (found := find(_parsed(path)))}


def test_the_core_calls_nothing_that_differs_between_runs() -> None:
    def banned(tree: ast.Module) -> list[str]:
        calls = [(name, line) for name, line in _calls(tree) if name in BANNED_CALLS]
        return [f"line {line}: {name}: {BANNED_CALLS[name]}" for name, line in calls]

    assert _in_the_core(banned) == {}


def test_the_core_does_not_depend_on_the_order_of_a_set() -> None:
    assert _in_the_core(lambda tree: [f"line {line}" for line in _set_iterations(tree)]) == {}


def test_the_core_does_not_assert() -> None:
    """``python -O`` strips assert; invariants are checked by ``check``."""

    def asserts(tree: ast.Module) -> list[str]:
        return [f"line {n.lineno}" for n in ast.walk(tree) if isinstance(n, ast.Assert)]

    assert _in_the_core(asserts) == {}


def _moves(tree: ast.AST) -> list[str]:
    """Calls that take room or give it back, of whatever book."""
    return [
        f"line {node.lineno}: {ast.unparse(node.func)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("reserve", "adopt", "renew", "release", "charge")
        and ast.unparse(node.func.value).endswith(("capacity", "gangs", "forest"))
    ]


def test_only_the_admission_moves_room() -> None:
    """Otherwise a change could miss one of the two books: of nodes or of quotas."""
    found = _in_the_core(_moves)
    found.pop("capacity.py")  # the owner of the gangs
    assert len(found.pop("admission.py")) >= 7
    assert found == {}


def test_the_rules_find_what_they_are_for() -> None:
    bad = ast.parse("for x in {1, 2}: hash(x)\n[y for y in set(z)]\ndef __hash__(s): hash(s.key)")

    assert _set_iterations(bad) == [1, 2]
    assert [name for name, _ in _calls(bad)] == ["hash", "set"]


def test_every_module_says_what_its_job_is() -> None:
    for path in SOURCES:
        doc = ast.get_docstring(_parsed(path))
        assert doc, path
        assert len(doc.splitlines()[0]) <= 100, path


ROOMS = [str(one.parent.relative_to(ROOT / "mcad")) for one in CORE if one.name == "__init__.py"]


@pytest.mark.parametrize("package", ROOMS)
def test_the_map_of_a_package_has_each_of_its_modules_once(package: str) -> None:
    folder = ROOT / "mcad" / package
    there = [one.stem for one in folder.iterdir() if one.suffix == ".py" or _is_package(one)]
    lines = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "").splitlines()
    listed = [name for line in lines for name in _listed(line)]

    assert sorted(listed) == sorted(name for name in there if name != "__init__")


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").exists()


def _listed(line: str) -> list[str]:
    """``one, two   what they are``: the names in front, if a line has such."""
    names = re.match(r"((?:\w+, )*\w+)  ", line)
    return names[1].split(", ") if names else []
