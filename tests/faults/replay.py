"""Plays one trial alone: ``python -m tests.faults.replay contested 17 --only 3,5``.

``--shrink`` leaves out what its failure does not need.
"""

from __future__ import annotations

import argparse

from tests.faults.trials import KINDS, drawn, judged


def main() -> None:
    """Ends with the failure of the trial, or with what came up in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=tuple(KINDS))
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", help="the numbers of the parts to play")
    parser.add_argument("--shrink", action="store_true")
    given = parser.parse_args()
    trial = drawn(given.kind, given.seed)
    kept = None if given.only is None else [int(one) for one in given.only.split(",") if one]
    print(*trial.told(kept), sep="\n", flush=True)
    outcome = judged(trial) if given.shrink else trial.play(kept)
    print(dict(outcome.cases), outcome.states)


if __name__ == "__main__":
    main()
