"""The tables of mutants fit the code as it is; ``make mutants`` runs them."""

from __future__ import annotations

import pytest

from tests.mutants.tables import ROOT, Mutant, read

MUTANTS = read()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.module}: {one.name}")
def test_a_mutant_changes_one_place_and_names_tests_that_exist(mutant: Mutant) -> None:
    text = (ROOT / mutant.module).read_text()
    compile(mutant.mutate(text), mutant.module, "exec")
    assert mutant.tests
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists(), test


def test_names_are_unique_within_a_module() -> None:
    titles = [(one.module, one.name) for one in MUTANTS]
    assert sorted(titles) == sorted(set(titles))
