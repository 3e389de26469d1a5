"""``python -m tests.upgrades record [VERSION...]`` writes the journals of former versions anew;
``python -m tests.upgrades matrix [VERSION...]`` tries every kill point, in both directions.

Both take the versions from the history of this repository, which has to be there in full.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from mcad.controller.replica import Replica
from mcad.kube.client import Client
from mcad.kube.port import Api
from mcad.sim.clock import VirtualClock
from tests.faults.scenarios import Scenario
from tests.faults.two_processes import LEASE
from tests.upgrades.former import Former, checked_out
from tests.upgrades.journal import Journal, read, write
from tests.upgrades.versions import PATIENT, STORIES, VERSIONS, Version
from tests.upgrades.worlds import Heir, Life, Return, Standby, record, trouble


def former_life(former: Former, *, has_lease: bool) -> Life:
    """A process of a former version, which leads when it has the Lease, or from the beginning."""

    async def live(api: Api, clock: VirtualClock, scenario: Scenario) -> None:
        client = former.client(api, clock, Random(1))
        config = scenario.settings(1).model_copy(update={"leader_election": LEASE})
        make = former.replica if has_lease else former.controller
        await make(client, config, "former").run(asyncio.Event())

    return live


async def present_life(api: Api, clock: VirtualClock, scenario: Scenario) -> None:
    """A process of the present version."""
    config = scenario.settings(1).model_copy(update={"leader_election": LEASE})
    await Replica(Client(api, clock, Random(1)), config, identity="present").run(asyncio.Event())


def record_all(versions: Sequence[Version]) -> int:
    """Write the journals of these versions."""
    for version in versions:
        with checked_out(version.commit) as former:
            life = former_life(former, has_lease=version.has_lease)
            journals = {story: record(STORIES[story], life) for story in version.stories}
        write(version.journal, journals)
        writes = sum(len(one.marks) for one in journals.values())
        print(f"{version.name}: {writes} writes, {version.journal.stat().st_size} bytes")
    return 0


def matrix(versions: Sequence[Version]) -> int:
    """Try everything; the number of points at which something was wrong."""
    wrong = 0
    for version in versions:
        forth = read(version.journal)
        wrong += _tell(version.name, "to the present", forth, Heir)
        if version.has_lease:
            patient = {story: forth[story] for story in PATIENT}
            wrong += _tell(version.name, "to a present standby", patient, Standby)
        back = {story: record(STORIES[story], present_life) for story in version.stories}
        with checked_out(version.commit) as former:
            life = former_life(former, has_lease=False)
            wrong += _tell(version.name, "back from the present", back, partial(Return, life=life))
    return wrong


def _tell(version: str, what: str, journals: dict[str, Journal], build: Callable[..., Heir]) -> int:
    wrong = [
        f"    {story}: write {number}, {journal.marks[number].request}: {found}"
        for story, journal in journals.items()
        for number in range(len(journal.marks))
        if (found := trouble(STORIES[story], journal, number, build))
    ]
    points = sum(len(one.marks) for one in journals.values())
    line = f"{version:9} {what:21} {points - len(wrong):4} of {points}"
    print("\n".join((line, *wrong)), flush=True)
    return len(wrong)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    command, *names = sys.argv[1:] or [""]
    commands = {"record": record_all, "matrix": matrix}
    if command not in commands:
        sys.exit(__doc__)
    sys.exit(bool(commands[command]([one for one in VERSIONS if not names or one.name in names])))
