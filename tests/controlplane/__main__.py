"""`python -m tests.controlplane`: a cluster for a person, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import ExitStack

from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.operators import KUBERAY, Operators
from tests.controlplane.tutorial import load_tutorial_node


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with ControlPlane(start_delay_ms=options.start_delay_ms) as plane, ExitStack() as more:
            _furnish(plane, options)
            if options.kuberay:
                more.enter_context(Operators(plane, KUBERAY))
            print(f"A cluster is running at {plane.url}. Its logs are in {plane.folder}.")
            print("Ctrl-C ends it. In another terminal:\n")
            print(f"export KUBECONFIG={plane.admin_kubeconfig}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("The cluster is gone.")
    except binaries.MissingGo as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="how many (1)")
    parser.add_argument("--cpu", default="2", help="of each node (2)")
    parser.add_argument("--memory", default="8129036Ki", help="of each node (8129036Ki)")
    parser.add_argument("--pods", type=int, default=110, help="that fit on each node (110)")
    parser.add_argument("--gpus", type=int, default=0, help="nvidia.com/gpu of each node (0)")
    parser.add_argument(
        "--start-delay-ms", type=int, default=1000, help="from scheduled to running (1000)"
    )
    parser.add_argument(
        "--tutorial",
        action="store_true",
        help="the tutorial's one node instead, with the pods that take most of it",
    )
    parser.add_argument("--kuberay", action="store_true", help="run KubeRay's operator, too")
    return parser.parse_args()


def _furnish(plane: ControlPlane, options: argparse.Namespace) -> None:
    if options.tutorial:
        load_tutorial_node(plane)
        return
    names = [f"node-{number}" for number in range(1, options.nodes + 1)]
    gpus = {"nvidia.com/gpu": str(options.gpus)} if options.gpus else None
    for name in names:
        plane.add_node(name, options.cpu, options.memory, options.pods, extended=gpus, wait=False)
    plane.wait_for_nodes(names)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
