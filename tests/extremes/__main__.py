"""`python -m tests.extremes --count 20000`: what becomes of so many extreme manifests."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import printed
from tests.extremes.soak import POLICIES, furnish, soak

ROUND = 1000  # manifests for one life of the two replicas


def main() -> int:
    """Returns 1 if a process ended or an AppWrapper has no reason."""
    options = _options()
    is_bad = False
    with ControlPlane(kinds=printed("crd")) as plane, tempfile.TemporaryDirectory() as journals:
        account = furnish(plane)
        for policy, begin in zip(cycle(options.policy), range(options.begin, options.count, ROUND)):
            begun = time.monotonic()
            numbers = range(begin, min(begin + ROUND, options.count))
            found = soak(
                plane, account, Path(journals), policy=policy, seed=options.seed, numbers=numbers
            )
            is_bad = is_bad or bool(found.ended or found.untold)
            print(f"{policy}: {len(numbers)} in {time.monotonic() - begun:.0f} s")
            for fate, count in found.fates.most_common():
                print(f"  {count:6} {fate}")
            print(f"  log {dict(found.log)}")
            for line in (*found.untold[:20], *(f"ENDED {name}" for name in found.ended)):
                print(f"  {line}")
            for name in found.ended:
                print(plane.log(name).read_text(errors="replace")[-6000:])
            sys.stdout.flush()
    return int(is_bad)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.extremes", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="manifests, over all policies")
    parser.add_argument("--begin", type=int, default=0, help="with this number, after a stop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
