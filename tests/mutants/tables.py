"""The tables of mutants, as read from the YAML files beside this one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: in ``module``, ``old`` (which stands there once) becomes ``new``.

    ``tests`` are what pytest is given: files, folders, or single tests.
    """

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]

    def mutate(self, text: str) -> str:
        """The text of the module with the fault in it."""
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.module}: {self.name!r}: the text to replace stands there "
                f"{text.count(self.old)} times instead of once; mend the entry in {HERE.name}/"
            )
        return text.replace(self.old, self.new)


def read() -> list[Mutant]:
    """All mutants, in the order of their tables."""
    found = []
    for path in sorted(HERE.glob("*.yaml")):
        for module, entries in yaml.safe_load(path.read_text()).items():
            for entry in entries:
                tests = tuple(str(entry["tests"]).split())
                mutant = Mutant(entry["name"], module, entry["old"], entry["new"], tests)
                found.append(mutant)
    return found
