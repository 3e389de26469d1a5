"""When and how a container ends, read off its command and the simulator's annotations.

There is no container; what a command would do is read off its words: ``sleep 30``,
``sh -c "sleep 2; exit 3"``, ``true``, ``false``. Whatever else it is, it is taken for a server and
runs for ever. Annotations of the pod win:

- ``sim.mcad.dev/run-for: 30s``: every container ends after that time,
- ``sim.mcad.dev/fail-after: 10s``: the same, and it fails,
- ``sim.mcad.dev/exit-code: "3"``: with this code; alone, a server ends with it at once,
- ``sim.mcad.dev/start-delay: 5s``: how long the pod takes to start (read by kubelet.py),
- ``sim.mcad.dev/ready-after: 20s``: how long a container that runs takes to be ready,
- ``sim.mcad.dev/pull-fails-for: 90s``: its image cannot be pulled for so long, or for ``ever``,
- ``sim.mcad.dev/config-fails-for: 90s``: the same of a ConfigMap that its containers name,
- ``sim.mcad.dev/mount-fails-for: 90s``: the same of a volume, which only Events say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import inf
from typing import NamedTuple

from mcad.kube.types import Json

PREFIX = "sim.mcad.dev/"
RUN_FOR = f"{PREFIX}run-for"
FAIL_AFTER = f"{PREFIX}fail-after"
EXIT_CODE = f"{PREFIX}exit-code"
START_DELAY = f"{PREFIX}start-delay"
READY_AFTER = f"{PREFIX}ready-after"
PULL_FAILS = f"{PREFIX}pull-fails-for"
CONFIG_FAILS = f"{PREFIX}config-fails-for"
MOUNT_FAILS = f"{PREFIX}mount-fails-for"
DURATIONS = (RUN_FOR, FAIL_AFTER, START_DELAY, READY_AFTER, PULL_FAILS, CONFIG_FAILS, MOUNT_FAILS)
EVER = "ever"

_MAY_LAST = (PULL_FAILS, CONFIG_FAILS, MOUNT_FAILS)
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]*\.?[0-9]+)(ms|[smhd]?)")
_SLEEP = re.compile(r"(?:^|[;&|(\s])sleep\s+([^\s;&|)]+)")
_EXIT = re.compile(r"(?:^|[;&|{\s])exit\s+([0-9]+)")
_TRUE = re.compile(r"\s*true\s*")
_FALSE = re.compile(r"(?:^|[;&\s])false\s*;?\s*$")
_LOOP = re.compile(r"(?:^|[;&|\s])(?:while|until|for)\s")
_SHELL = re.compile(r"(?:ba|da|a)?sh")
_SCRIPT_FLAG = re.compile(r"-[a-z]*c")
_CACHED = 4096


class End(NamedTuple):
    """How a container ends."""

    after_s: float
    code: int


def duration_s(text: str) -> float | None:
    """``10s``, ``1.5m``, ``500ms``, ``30``; None if it is not a duration."""
    found = _DURATION.fullmatch(text)
    return float(found[1]) * _UNITS[found[2]] if found else None


def noted_s(annotations: Mapping[str, str], name: str) -> float:
    """The duration that an annotation says, endless for ``ever``; 0 if there is none."""
    text = annotations.get(name, "")
    if text == EVER and name in _MAY_LAST:
        return inf
    return duration_s(text) or 0.0


def end_of(container: Json, annotations: Mapping[str, str]) -> End | None:
    """How a container of a pod with these annotations ends; None if it runs for ever."""
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    end = _of_words(words)
    fails = FAIL_AFTER in annotations
    after_s = duration_s(annotations.get(FAIL_AFTER) or annotations.get(RUN_FOR) or "")
    text = annotations.get(EXIT_CODE, "")
    if after_s is None and not text.isdecimal():
        return end
    code = int(text) if text.isdecimal() else int(fails)
    if after_s is None:
        after_s = end.after_s if end else 0.0
    return End(after_s, code)


def faults(annotations: Mapping[str, str]) -> list[str]:
    """What is wrong with annotations that are meant for the simulator."""
    found = [
        f'annotation {name}: "{annotations[name]}" is not a duration: write it like "10s" or "1m"'
        for name in DURATIONS
        if name in annotations
        and duration_s(annotations[name]) is None
        and not (name in _MAY_LAST and annotations[name] == EVER)
    ]
    code = annotations.get(EXIT_CODE)
    if code is not None and not code.isdecimal():
        found.append(f'annotation {EXIT_CODE}: "{code}" is not an exit code: write it like "1"')
    return found


@lru_cache(_CACHED)
def _of_words(words: tuple[str, ...]) -> End | None:
    program = words[0].rpartition("/")[2] if words else ""
    if program == "sleep":
        seconds = _total(words[1:])
        return None if seconds is None else End(seconds, 0)
    if program in {"true", "false"}:
        return End(0.0, int(program == "false"))
    if _SHELL.fullmatch(program):
        flag = next((i for i, word in enumerate(words) if _SCRIPT_FLAG.fullmatch(word)), None)
        rest = [] if flag is None else [word for word in words[flag + 1 :] if word != "--"]
        return _of_script(rest[0]) if rest else None
    return None


def _of_script(text: str) -> End | None:
    """One that has a loop, or neither sleeps nor exits, is taken for a server."""
    if _LOOP.search(text):
        return None
    sleeps, exits = _SLEEP.findall(text), _EXIT.findall(text)
    fails = _FALSE.search(text) is not None
    if not (sleeps or exits or fails or _TRUE.fullmatch(text)):
        return None
    seconds = _total(sleeps)
    if seconds is None:
        return None
    return End(seconds, int(exits[-1]) & 0xFF if exits else int(fails))


def _total(words: list[str] | tuple[str, ...]) -> float | None:
    """``sleep`` adds up its arguments; None if one is no duration, as ``infinity``."""
    known = [duration_s(word) for word in words]
    total = 0.0
    for one in known:
        if one is None:
            return None
        total += one
    return total
