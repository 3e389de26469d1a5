"""``mcad ui``: serves a page with queue, capacity and quota to the user's browser."""

from __future__ import annotations

import asyncio
import gc
import webbrowser

import click

from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.options import scope_options, source_options
from mcad.cli.stopping import Stop
from mcad.client.scope import Scope, Source
from mcad.ui.board import Board
from mcad.ui.guard import Guard
from mcad.ui.login import Login
from mcad.ui.server import served
from mcad.ui.token_access import ApiServer
from mcad.ui.view import View

NEW_OBJECTS = 200_000  # between two collections, instead of 700


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="On loopback; 0 (the default) takes a free one.",
)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@click.option("--login", is_flag=True, help="Show each browser what a token given there may see.")
@source_options
@scope_options
def ui(*, port: int, browser: bool, login: bool, source: Source, scope: Scope) -> None:
    """Show queue, capacity and quota live in a browser.

    The page is served on 127.0.0.1 only, with your kubeconfig and your rights; it reads, and
    changes nothing. The printed address works once and opens a session for one browser; another
    address is printed then. Without -n or -A the page shows all namespaces, or that of the context
    if you may not see all. Ctrl-C ends it.

    With --login the page has no rights of its own: each browser logs in with a token of the
    cluster, or a proxy before the page sends one with every request (Authorization: Bearer).
    """
    if scope.namespace and scope.all_namespaces:
        raise click.UsageError("give either -n or -A")
    if login and (source.server or scope.namespace or scope.all_namespaces):
        raise click.UsageError("--login goes without --server, -n and -A: the token decides")
    if login:
        spare_the_collector()
        asyncio.run(_serve_logins(Login(environment(), source), port, opens=browser))
        return
    may_narrow = not scope.all_namespaces  # -A asks for all, without a fallback
    scope = Scope(scope.namespace, all_namespaces=not scope.namespace)
    spare_the_collector()
    board = Board(environment(), source, scope, may_narrow=may_narrow)
    asyncio.run(_serve(board, port, opens=browser))


async def _serve(board: Board, port: int, *, opens: bool) -> None:
    """Serve until a signal; raises a failure before the first figures."""
    with Stop() as stop:
        guard = Guard(View(board), _print_next)
        async with board.followed(stop.event.set), served(guard, port):
            await _shown(guard.address, stop, opens=opens)


async def _serve_logins(guard: Login, port: int, *, opens: bool) -> None:
    """Serve until a signal; what is wrong with the cluster is said at once."""
    ApiServer.of(guard.callers.target)
    with Stop() as stop:
        async with guard.callers.swept(), served(guard, port):
            note = "Each browser logs in with a token of the cluster. "
            await _shown(guard.address, stop, note, opens=opens)


async def _shown(address: str, stop: Stop, note: str = "", *, opens: bool) -> None:
    """Say where the page is, and show it until a signal."""
    stop.begun()
    click.echo(f"The page is at {address}")
    click.echo(f"{note}Ctrl-C ends it.")
    if opens:
        await asyncio.to_thread(webbrowser.open, address)
    await stop.event.wait()


def spare_the_collector() -> None:
    """Objects that watches keep would be scanned at every computation, which doubles its cost;
    what it makes is freed without the collector."""
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


def _print_next(address: str) -> None:
    click.echo(f"For another browser: {address}")
