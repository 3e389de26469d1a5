"""``mcad demo``: a simulated cluster with a dispatcher in this process, as a tour or to be used.

Nothing is installed, and nothing remains afterwards.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import click
import yaml
from msgspec import Struct

from mcad.api.config import Config
from mcad.api.labels import VISIBILITY_GROUP
from mcad.cli.arguments.options import Output, record, settings_options
from mcad.cli.demo_cluster import quota_tour, tutorial_objects
from mcad.cli.demo_cluster.child_process import run_with
from mcad.cli.demo_cluster.cluster import dispatching, embedded_cluster, leading
from mcad.cli.demo_cluster.quota_tour import QuotaDemo
from mcad.cli.demo_cluster.tutorial import LOOK_S, DemoFailedError, DemoOutput, TutorialDemo
from mcad.cli.demo_cluster.visibility import unavailable
from mcad.cli.invocation import invocation
from mcad.cli.pages.colours import BOLD, Palette
from mcad.cli.stopping import Stop
from mcad.client.config import load_config
from mcad.client.errors import McadError
from mcad.client.figures.of_visibility import probe
from mcad.client.scope import Scope, Settings, Source
from mcad.client.session import Environment
from mcad.controller.leader_figures import LeaderFigures
from mcad.kube.client import Client
from mcad.kube.clock import RealClock
from mcad.kube.kinds import APPWRAPPER_REPORTS, QUOTA_SUBTREES
from mcad.sim.cluster import Cluster
from mcad.sim.serving.serve import ApiServerHttp, kubeconfig
from mcad.sim.serving.server import SimApi

PAUSE_S = 4.0
SEED = 20260727
KUBECONFIG = "mcad-demo.kubeconfig"
SAMPLE = "samples/aw-01.yaml"
NODES_MAX = 5000
LED_S = 10.0  # patience until the dispatcher holds its Lease


class Shape(Struct, frozen=True):
    """The size of the cluster; without ``nodes`` that of the tutorial, with its load."""

    nodes: int | None = None
    cpu: str = "8"
    memory: str = "32Gi"
    gpu: int = 0


class Serving(Struct, frozen=True):
    """Whether the API server keeps running, and how: for ``command``, or until Ctrl-C."""

    command: tuple[str, ...] = ()
    serve: bool = False
    port: int = 0
    kubeconfig: str = KUBECONFIG
    dispatcher: bool = True


shape_options = record(
    "shape",
    Shape,
    click.option(
        "--nodes", type=click.IntRange(0, NODES_MAX), help="With --serve: that many equal nodes."
    ),
    click.option("--cpu", default="8", show_default=True, help="CPUs of each of them."),
    click.option("--memory", default="32Gi", show_default=True, help="Memory of each of them."),
    click.option(
        "--gpu", type=click.IntRange(0), default=0, show_default=True, help="nvidia.com/gpu each."
    ),
)
serving_options = record(
    "serving",
    Serving,
    click.argument(
        "command", metavar="[quota | -- COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED
    ),
    click.option("--serve", is_flag=True, help="Keep an API server up for kubectl, until Ctrl-C."),
    click.option(
        "--port", type=click.IntRange(0, 65535), default=0, help="On loopback; 0 takes a free one."
    ),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        default=KUBECONFIG,
        show_default=True,
        help="With --serve: written at the start, removed at the end.",
    ),
    click.option(
        "--dispatcher/--no-dispatcher",
        default=True,
        help="With --serve: leave the dispatcher out, to run your own with `mcad run`.",
    ),
)


@click.command()
@shape_options
@serving_options
@click.option(
    "--pause",
    "pause_s",
    type=click.FloatRange(0, 60),
    default=PAUSE_S,
    show_default=True,
    help="Seconds to read each step of the tour.",
)
@settings_options
def demo(shape: Shape, serving: Serving, pause_s: float, settings: Settings) -> None:
    """See the dispatcher at work without a cluster.

    `mcad demo` simulates a small cluster in this process, runs the dispatcher on it and shows
    MCAD's tutorial step by step, in about half a minute. `mcad demo quota` shows how three teams
    share a cluster. Exit code 0 means that every step had the announced result.

    With --serve the cluster keeps running for kubectl, and the page of `mcad ui` shows it: the
    node of the tutorial with its load, or --nodes of your choice. A COMMAND is run with KUBECONFIG
    set as soon as the cluster is ready, and the cluster ends with it: `mcad demo --serve -- bash`.
    """
    if not serving.serve and serving.command not in DEMOS:
        raise click.UsageError("a COMMAND needs --serve: add it, or use `mcad demo quota`")
    if not serving.serve and shape != Shape():
        raise click.UsageError("--nodes, --cpu, --memory and --gpu need --serve")
    palette = Output().palette
    if serving.serve:
        raise click.exceptions.Exit(asyncio.run(_serve(shape, serving, settings, palette)))
    try:
        asyncio.run(
            _run_demo(DEMOS[serving.command], settings, DemoOutput(click.echo, palette, pause_s))
        )
    except DemoFailedError as error:
        raise McadError(
            f"the demo had another result than announced: {error}; please report it"
        ) from error


class Demo(Struct, frozen=True):
    """A tour: its cluster, its steps, its settings, and its last lines."""

    load: Callable[[Cluster], None]
    steps: Callable[[Client, LeaderFigures, DemoOutput], TutorialDemo | QuotaDemo]
    settings: dict[str, Any]
    ends: Callable[[], tuple[str, ...]]


async def _run_demo(chosen: Demo, settings: Settings, output: DemoOutput) -> None:
    config = load_config(settings).model_copy(update=chosen.settings)
    rng = Random(SEED)  # noqa: S311 - names of simulated objects are no secrets
    async with embedded_cluster(RealClock(), rng) as cluster:
        chosen.load(cluster)
        async with leading(cluster, config, rng) as (client, figures):
            await chosen.steps(client, figures, output).run()
    for line in chosen.ends():
        output.say(line)


def _after_the_tutorial() -> tuple[str, ...]:
    return (
        "That was the tutorial. To use a cluster like this one with kubectl, and to look at its",
        "queue in a browser:",
        f"    {invocation()} demo --serve",
        "README.md explains how to install the dispatcher on a real cluster.",
    )


def _after_the_shares() -> tuple[str, ...]:
    return (
        "The files of this tour are in samples/quota; docs/use/quotas.md explains quota trees.",
        "`mcad quota check -f FILE` checks your own quota trees before you apply them.",
    )


async def _serve(shape: Shape, serving: Serving, settings: Settings, palette: Palette) -> int:
    """Serve until Ctrl-C or until the command ends; returns the exit code."""
    config = load_config(settings)
    with Stop() as stop:
        return await _serve_until(stop, shape, serving, config, palette)
    return stop.code if serving.command else 0


async def _serve_until(
    stop: Stop, shape: Shape, serving: Serving, config: Config, palette: Palette
) -> int:
    rng = Random(SEED)  # noqa: S311 - names of simulated objects are no secrets
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(embedded_cluster(RealClock(), rng))
        fill(cluster, shape)
        path = await stack.enter_async_context(_served(cluster, serving))
        if serving.dispatcher:
            client = await stack.enter_async_context(dispatching(cluster, config, rng))
            await _until_led(client)
        else:
            cluster.registry.aggregated[VISIBILITY_GROUP] = unavailable
        if serving.command:
            stop.begun()
            stop.leave_interrupt()
            return await run_with(serving.command, {"KUBECONFIG": str(path)}, stop.event)
        page = await stack.enter_async_context(_page(path, stop.event)) if _has_page() else ""
        stop.begun()
        for line in _ready(path, page, palette):
            click.echo(line)
        await stop.event.wait()
    return 0


async def _until_led(client: Client) -> None:
    """Wait until the dispatcher leads, ``LED_S`` at most."""
    until = client.clock.monotonic() + LED_S
    while client.clock.monotonic() < until:
        if not await probe(client, APPWRAPPER_REPORTS, None):
            return
        await client.clock.sleep(LOOK_S)


def _has_page() -> bool:
    """Whether the extra of the page is installed."""
    return find_spec("jinja2") is not None


@asynccontextmanager
async def _page(path: Path, stop: asyncio.Event) -> AsyncIterator[str]:
    """Serve the page of ``mcad ui``; yields its address."""
    from mcad.client.figures.pace import AT_ONCE  # noqa: PLC0415 - with the page
    from mcad.ui.board import Board  # noqa: PLC0415 - needs the extra
    from mcad.ui.guard import Guard  # noqa: PLC0415
    from mcad.ui.server import served  # noqa: PLC0415
    from mcad.ui.view import View  # noqa: PLC0415

    source, everywhere = Source(kubeconfig=str(path)), Scope(all_namespaces=True)
    # The server is in this process: it answers, unless the process is stopped in the meantime.
    board = Board(
        Environment(), source, everywhere, may_narrow=False, pace=AT_ONCE, persistent=True
    )

    def print_next(address: str) -> None:
        click.echo(f"For another browser: {address}")

    guard = Guard(View(board), print_next)
    async with board.followed(stop.set), served(guard, 0):
        yield guard.address


def _ready(path: Path, page: str, palette: Palette) -> Iterator[str]:
    """The next commands for the user, to be pasted, and the address of the page."""
    yield "The cluster is ready. In another terminal:"
    yield ""
    yield f"    export KUBECONFIG={shlex.quote(str(path))}"
    yield "    kubectl get nodes,pods -A"
    if Path(SAMPLE).exists():
        yield f"    kubectl create -f {SAMPLE}"
    yield f"    {invocation()} queue"
    yield ""
    if page:
        yield "Or in a browser:"
        yield ""
        yield f"    {page}"
        yield ""
    yield palette.paint("Ctrl-C stops the cluster.", BOLD)


@asynccontextmanager
async def _served(cluster: Cluster, serving: Serving) -> AsyncIterator[Path]:
    """Serve the API on loopback; yields the path of the kubeconfig."""
    server = ApiServerHttp(SimApi(cluster.registry))
    try:
        url = await _listen(server, serving.port)
        with _private_file(serving.kubeconfig, yaml.safe_dump(kubeconfig(url))) as path:
            yield path
    finally:
        await server.close()


async def _listen(server: ApiServerHttp, port: int) -> str:
    try:
        return await server.start("127.0.0.1", port)
    except OSError as error:
        raise McadError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}; choose another --port"
        ) from error


@contextmanager
def _private_file(name: str, text: str) -> Iterator[Path]:
    """Write a file and remove it at the end. Never overwrites: it may be a real kubeconfig."""
    path = Path(name).absolute()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise McadError(
            f"--kubeconfig: {path} exists; remove it, or choose another file"
        ) from error
    except OSError as error:
        raise McadError(f"--kubeconfig: cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        yield path
    finally:
        path.unlink(missing_ok=True)


def load_tutorial(cluster: Cluster) -> None:
    """Create the node of the tutorial and the foreign pods on it."""
    cluster.add_node(
        tutorial_objects.NODE,
        cpu=tutorial_objects.NODE_CPU,
        memory=tutorial_objects.NODE_MEMORY,
        pods=tutorial_objects.NODE_PODS,
    )
    pods = cluster.registry.kind("v1", "Pod")
    for pod in tutorial_objects.foreign_pods():
        cluster.registry.create(pods, tutorial_objects.FOREIGN_NAMESPACE, pod)


def load_shares(cluster: Cluster) -> None:
    """Create the node and the quota tree of the tour about quota."""
    cluster.add_node(quota_tour.NODE, cpu=quota_tour.NODE_CPU, memory=quota_tour.NODE_MEMORY)
    subtrees = cluster.registry.kind(QUOTA_SUBTREES.api_version, QUOTA_SUBTREES.kind)
    for obj in quota_tour.subtrees():
        cluster.registry.create(subtrees, tutorial_objects.NAMESPACE, obj)


def fill(cluster: Cluster, shape: Shape) -> None:
    """Create the nodes of this shape, or those of the tutorial with their load."""
    if shape.nodes is None:
        load_tutorial(cluster)
        return
    extended = {"nvidia.com/gpu": str(shape.gpu)} if shape.gpu else {}
    for number in range(shape.nodes):
        cluster.add_node(
            f"node-{number + 1}", cpu=shape.cpu, memory=shape.memory, extended=extended
        )


DEMOS = {
    (): Demo(load_tutorial, TutorialDemo, {}, _after_the_tutorial),
    ("quota",): Demo(load_shares, QuotaDemo, {"quota_enabled": True}, _after_the_shares),
}
"""The tours by the arguments of ``mcad demo``."""
