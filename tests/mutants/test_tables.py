"""The tables of mutants fit the code as it is; ``make mutants`` runs them."""

from __future__ import annotations

import ast

from tests.mutants.tables import HERE, ROOT, Mutant, read

MUTANTS = read()


def test_a_mutant_changes_one_place_and_names_tests_that_exist() -> None:
    wrong = {f"{one.module}: {one.name}": why for one in MUTANTS if (why := _fault(one))}
    assert not wrong


def _fault(mutant: Mutant) -> str:
    try:
        compile(mutant.mutate((ROOT / mutant.module).read_text()), mutant.module, "exec")
    except (SyntaxError, ValueError, OSError) as error:
        return str(error)
    missing = [one for one in mutant.tests if not (ROOT / one.partition("::")[0]).exists()]
    return f"no such test: {missing}" if missing or not mutant.tests else ""


def test_names_are_unique_within_a_module() -> None:
    titles = [(one.module, one.name) for one in MUTANTS]
    assert sorted(titles) == sorted(set(titles))


def test_a_module_has_one_place_in_a_table() -> None:
    """YAML keeps the last of two equal keys, and the rest of the mutants would not be run."""
    for path in HERE.glob("*.yaml"):
        modules = [line for line in path.read_text().splitlines() if line.startswith("mcad/")]
        assert sorted(set(modules)) == sorted(modules), path.name


DECLARES = {
    "mcad/api/projections.py": "fields that are decoded",
    "mcad/api/quotamodels.py": "fields of QuotaSubtrees",
    "mcad/core/answers/remedies.py": "kinds of answers",
    "mcad/core/state/work_bounds.py": "numbers",
    "mcad/core/queue/walk.py": "where the walk stands",
    "mcad/core/commands.py": "fields of commands",
    "mcad/core/events.py": "fields of events",
    "mcad/core/state/answer.py": "fields of an answer",
    "mcad/core/state/errors.py": "fields of the errors of a step",
    "mcad/core/state/condition_reasons.py": "conditions and their reasons",
    "mcad/core/state/records.py": "names of msgspec",
    "mcad/api/scale_up/kept.py": "annotations of pods",
    "mcad/core/state/run_policy.py": "fields of settings with their defaults",
    "mcad/core/state/status_view.py": "fields of a status",
    "mcad/core/state/timers.py": "names of timers",
    "mcad/kube/kinds.py": "names of kinds",
    "mcad/kube/types.py": "names of types",
}
"""Modules that only declare, and what: there is no behaviour to break."""


def _modules() -> set[str]:
    layers = (ROOT / "mcad" / layer for layer in ("api", "core", "controller", "kube"))
    paths = (path for layer in layers for path in layer.rglob("*.py"))
    return {str(one.relative_to(ROOT)) for one in paths if one.name != "__init__.py"}


def test_every_module_with_behaviour_has_a_mutant() -> None:
    assert _modules() - DECLARES.keys() - {one.module for one in MUTANTS} == set()


def test_modules_that_only_declare_exist_and_have_no_statements() -> None:
    """Classes, assignments and imports only: a module that gains a function needs a mutant."""
    for module in DECLARES:
        tree = ast.parse((ROOT / module).read_text())
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        assert not functions, module
