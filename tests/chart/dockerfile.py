"""Reads deploy/Dockerfile and does what it says, as far as that goes without a container engine."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PACKAGES = "apt-get "
"""How a step begins that brings Python: here that of the tests stands in for it."""


@dataclass(frozen=True, slots=True)
class Step:
    """``RUN make``: the instruction in upper case, and the rest."""

    word: str
    rest: str


@dataclass(slots=True)
class Stage:
    """From a FROM to the next."""

    base: str
    name: str
    steps: list[Step] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        """What follows each occurrence of an instruction."""
        return [step.rest for step in self.steps if step.word == word]


def steps(text: str) -> Iterator[Step]:
    """Instructions, with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield Step(word.upper(), rest.strip())


def stages(text: str) -> list[Stage]:
    """The stages; build arguments before the first are put in."""
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    for step in steps(text):
        if step.word == "FROM":
            base, _, name = step.rest.partition(" AS ")
            for key, value in arguments.items():
                base = base.replace(f"${{{key}}}", value)
            found.append(Stage(base, name))
        elif found:
            found[-1].steps.append(step)
        else:
            assert step.word == "ARG", step
            key, _, value = step.rest.partition("=")
            arguments[key] = value
    return found


def play(stage: Stage, context: Path, folder: Path, env: Mapping[str, str]) -> None:
    """COPY and RUN of a stage in a folder in place of its WORKDIR; ``env`` has build arguments, and
    ARG the others."""
    ignored = (context / ".dockerignore").read_text().splitlines()
    defaults = dict(one.split("=", 1) for one in stage.all("ARG") if "=" in one)
    for step in stage.steps:
        if step.word == "COPY":
            *sources, target = step.rest.split()
            for source in sources:
                _copy(context, source, folder / target, ignored)
        elif step.word == "RUN" and not step.rest.startswith(PACKAGES):
            done = subprocess.run(
                ["sh", "-e", "-c", step.rest],
                cwd=folder,
                env=defaults | dict(env),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{step.rest}\n{done.stdout}\n{done.stderr}"
        else:
            assert step.word in ("ARG", "WORKDIR", "RUN"), f"{step} is not played"


def _copy(context: Path, source: str, target: Path, ignored: list[str]) -> None:
    """What .dockerignore lets through; everything is shut out there unless it is named."""
    assert "*" in ignored
    assert f"!{source}" in ignored, f"{source} is not in the build context"
    where = context / source
    if where.is_file():
        shutil.copy(where, target / where.name)
        return
    patterns = [line.removeprefix("**/") for line in ignored if line.startswith("**/")]

    def unwanted(_: str, names: list[str]) -> set[str]:
        return {name for name in names for one in patterns if fnmatch.fnmatch(name, one)}

    shutil.copytree(where, target, ignore=unwanted)
