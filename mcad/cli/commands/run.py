"""``mcad run``: the process of the dispatcher.

It connects, runs the preflight checks, serves the HTTP port and runs a replica, which leads or
stands by. SIGTERM and SIGINT end it within 5 s with exit code 0 (before its first log record with
that of every command), the loss of the Lease at once with exit code 1.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import SystemRandom

import click
from aiohttp import web
from msgspec import Struct

from mcad.api.config import Config, to_settings
from mcad.cli.arguments.options import cluster_options, settings_options
from mcad.cli.commands.run_options import (
    Address,
    AddressType,
    JournalOptions,
    MetricsOptions,
    VisibilityOptions,
    journal_options,
    metrics_options,
    visibility_options,
)
from mcad.cli.errors import FAILED
from mcad.cli.log_format import FORMATS, LEVELS, start_logging
from mcad.client.config import load_config
from mcad.client.errors import McadError, explain
from mcad.client.scope import Settings, Target
from mcad.controller.gc_tuning import freeze_while_listing
from mcad.controller.http_port import application, metrics_application
from mcad.controller.http_server import Server
from mcad.controller.leader_figures import LeaderFigures
from mcad.controller.metrics_access import MetricsAccess
from mcad.controller.metrics_listener import MetricsListening, MetricsPort
from mcad.controller.preflight import Preflight, Unfit
from mcad.controller.replica import Replica
from mcad.controller.visibility.listener import Listening, Visibility
from mcad.core.cluster import Cluster
from mcad.journal.header import Header
from mcad.journal.writer import Journal, Limits
from mcad.kube.client import Client
from mcad.kube.clock import Clock, RealClock
from mcad.kube.connection import load
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.lease import LeaseLost
from mcad.kube.port import Request
from mcad.kube.rest import RestApi
from mcad.version import __version__

_log = logging.getLogger(__name__)

REACH_S = 10.0  # patience with an API server that is starting
END_S = 3.5  # from the signal until running requests are cancelled


class Launch(Struct, frozen=True):
    """The options of ``mcad run``."""

    http: Address
    target: Target
    config: Config
    coexist: bool
    journal: JournalOptions
    listening: Listening | None
    metrics: MetricsListening | None


@click.command()
@click.option(
    "--http",
    type=AddressType(),
    default="127.0.0.1:8080",
    show_default=True,
    help="Address for health, metrics and figures; port 0: a free port, which is logged.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="The lowest level of log records.",
)
@click.option(
    "--log-format",
    type=click.Choice(list(FORMATS)),
    default="logfmt",
    show_default=True,
    help="The form of log records.",
)
@click.option(
    "--force-coexist",
    is_flag=True,
    help="Run even if Kueue's AppWrapper integration or another AppWrapper controller is found.",
)
@metrics_options
@journal_options
@visibility_options
@cluster_options
@settings_options
def run(  # noqa: PLR0913 - click passes options by name
    http: Address,
    log_level: str,
    log_format: str,
    target: Target,
    settings: Settings,
    *,
    keep: JournalOptions,
    visible: VisibilityOptions,
    scraped: MetricsOptions,
    force_coexist: bool,
) -> None:
    """Run the dispatcher.

    In a pod it uses the service account of the pod, unless --kubeconfig is given. Every setting can
    also be an environment variable, such as MCAD_BACKOFF_TIME for backoffTime; --set overrides the
    environment, which overrides the file.
    """
    start_logging(log_level, log_format)
    try:
        config, listening = load_config(settings), visible.listening()
        launch = Launch(http, target, config, force_coexist, keep, listening, scraped.listening())
        asyncio.run(_run_until_signal(launch))
        gc.freeze()  # else the collector looks at all objects before the process ends: 0.7 s
    except McadError as error:
        _log.error("cannot run error=%s", error.message)
        raise click.exceptions.Exit(FAILED) from error
    except Exception as error:
        _log.exception("broken error=%s: %s", type(error).__name__, error)
        raise click.exceptions.Exit(FAILED) from error


async def _run_until_signal(launch: Launch) -> None:
    """Run until a signal, then give running requests ``END_S`` to end."""
    stop, begun = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _log.info("starting version=%s", __version__)
    work = asyncio.ensure_future(_work(launch, stop, begun))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not work.done():
        _log.info("stopping")
        if begun.is_set():
            await asyncio.wait((work,), timeout=END_S)
        work.cancel()
    try:
        await work
    except asyncio.CancelledError:
        _log.warning("stopped before all requests ended")
    else:
        _log.info("stopped")


async def _work(launch: Launch, stop: asyncio.Event, begun: asyncio.Event) -> None:
    """Run a replica; ``begun`` is set as soon as requests may be running."""
    async with _connected(RealClock(), launch.target) as client:
        preflight = Preflight(client, launch.config, coexist=launch.coexist)
        await preflight.check()
        identity = f"{socket.gethostname()}-{secrets.token_hex(4)}"
        replica = Replica(
            client,
            launch.config,
            identity=identity,
            preflight=preflight,
            keep_journal=lambda cluster, epoch: _keep_journal(launch, cluster, identity, epoch),
        )
        if launch.listening is not None:
            replica.companion = Visibility(LeaderFigures(replica), launch.listening).run
        is_secure = launch.metrics is not None
        app = application(replica, metrics_are_private=is_secure)
        async with _serving(app, launch.http), _serving_metrics(launch.metrics, replica, client):
            _log.info("started identity=%s", identity)
            begun.set()
            freezing = asyncio.ensure_future(freeze_while_listing(replica))
            try:
                await replica.run(stop)
            finally:
                freezing.cancel()


def _keep_journal(launch: Launch, cluster: Cluster, identity: str, epoch: int) -> Journal | None:
    """Begin a journal if asked for; a failure is only logged."""
    folder = launch.journal.journal
    if folder is None:
        return None
    header = Header(identity, epoch, to_settings(launch.config))
    try:
        return Journal(folder, header, cluster, Limits(launch.journal.journal_files))
    except OSError as error:
        _log.error("no journal is kept folder=%s error=%s", folder, error.strerror or error)
        return None


# -- before the start ------------------------------------------------------------------------


@asynccontextmanager
async def _connected(clock: Clock, target: Target) -> AsyncIterator[Client]:
    """Yield a client of a server that has answered; failures become ``McadError``."""
    try:
        connection = await load(clock, target.kubeconfig, target.context, in_cluster_first=True)
        async with RestApi(connection, clock) as api:
            client = Client(api, clock, SystemRandom())
            await _reach(client)
            _log.info("connected server=%s origin=%s", connection.base_url, connection.origin)
            if connection.proxy is not None:
                _log.info("connected through a proxy proxy=%s", connection.proxy)
            yield client
    except KubeError as error:
        raise explain(error) from error
    except Unfit as error:
        raise McadError(str(error)) from error
    except LeaseLost as error:
        raise McadError(f"{error}; this process ends: start it again if none stands by") from error


async def _reach(client: Client) -> None:
    try:
        await client.read(Request("GET", "/version"), REACH_S)
    except ApiError as error:
        if not error.forbidden:  # which proves that the server is reachable
            raise


# -- the ports ---------------------------------------------------------------------------


@asynccontextmanager
async def _serving(app: web.Application, http: Address) -> AsyncIterator[None]:
    server = Server(app)
    try:
        await _listen(server, http)
        yield
    finally:
        await server.close()


async def _listen(server: Server, http: Address) -> None:
    host = f"[{http.host}]" if ":" in http.host else http.host
    try:
        port = await server.start(http.host, http.port)
    except OSError as error:
        raise McadError(
            f"cannot listen on {host}:{http.port}: {error.strerror or error}; choose another --http"
        ) from error
    _log.info("listening http=%s:%d", host, port)


@asynccontextmanager
async def _serving_metrics(
    listening: MetricsListening | None, replica: Replica, client: Client
) -> AsyncIterator[None]:
    """Serve metrics over TLS, if asked for."""
    if listening is None:
        yield
        return
    access = MetricsAccess(client.measured(replica.metrics.count_request))
    port = MetricsPort(metrics_application(replica, access), listening, client.clock)
    serving = asyncio.ensure_future(port.run())
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
