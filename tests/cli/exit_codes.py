"""Which exit code a command ends with, by what happens: docs/reference/cli.md has this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Case(NamedTuple):
    """What happens, the exit code, and commands that end with it; None: tested elsewhere.

    ``runs`` and ``waits`` are AppWrappers of a cluster with one node.
    """

    what: str
    code: int
    commands: Mapping[str, tuple[str, ...] | None]
    is_of_all: bool = False
    """Whether every command that can get there ends so; ``commands`` are examples."""


CASES = (
    Case(
        "a named AppWrapper does not exist (the command is carried out for the others)",
        4,
        {
            "get": ("get", "runs", "nope"),
            "describe": ("describe", "runs", "nope"),
            "why": ("why", "nope"),
            "tree": ("tree", "nope"),
            "logs": ("logs", "nope"),
            "events": ("events", "nope"),
            "wait": ("wait", "nope", "--for=running"),
            "hold": ("hold", "nope", "--dry-run"),
            "release": ("release", "waits", "nope", "--dry-run"),
            "requeue": ("requeue", "nope", "--dry-run"),
            "priority": ("priority", "waits", "nope", "3", "--dry-run", "--yes"),
            "cancel": ("cancel", "nope", "--dry-run"),
            "what-if --without": ("what-if", "--without", "nope"),
            "replay --aw": None,
        },
    ),
    Case(
        "a named node does not exist",
        4,
        {
            "capacity": ("capacity", "nope"),
            "what-if --drain": ("what-if", "--drain", "nope"),
            "what-if --like": ("what-if", "--nodes", "+1", "--like", "nope"),
        },
    ),
    Case(
        "a named node of a quota tree does not exist",
        4,
        {"what-if --quota": ("what-if", "--quota", "nope/nope", "cpu=1"), "quota": None},
    ),
    Case("dispatch is not paused for that scope", 4, {"resume": ("resume",)}),
    Case(
        "no AppWrapper has those labels, or there is none",
        0,
        {
            "get": ("get", "-l", "a=b"),
            "queue": ("queue", "-l", "a=b"),
            "history": ("history", "-l", "a=b"),
            "hold": ("hold", "-l", "a=b"),
            "release": ("release", "-l", "a=b"),
            "requeue": ("requeue", "-l", "a=b"),
            "priority": ("priority", "-l", "a=b", "3"),
            "cancel": ("cancel", "-l", "a=b"),
        },
    ),
    Case("there is no AppWrapper to wait for", 4, {"wait": ("wait", "-l", "a=b", "--for=running")}),
    Case(
        "nothing changes: on hold already, not on hold, not dispatched, that priority already",
        0,
        {
            "hold": ("hold", "held"),
            "release": ("release", "waits"),
            "requeue": ("requeue", "waits"),
            "priority": ("priority", "waits", "0"),
        },
    ),
    Case("dispatch is paused for that scope already", 1, {"pause": ("pause", "-n", "default")}),
    Case(
        "more than one would be changed, without a terminal and without `--yes`",
        2,
        {
            "hold": ("hold", "--all"),
            "release": ("release", "--all"),
            "requeue": ("requeue", "--all"),
            "priority": ("priority", "--all", "3"),
            "cancel": ("cancel", "--all"),
        },
    ),
    Case("the question on a terminal is answered with no", 1, {"hold": None, "cancel": None}),
    Case(
        "the time of `--timeout` has passed",
        124,
        {
            "wait": ("wait", "waits", "--for=running", "--timeout", "1s"),
            "submit --wait": ("submit", "{large}", "--wait", "--timeout", "1s"),
            "requeue": None,
        },
    ),
    Case(
        "what is awaited will not happen",
        1,
        {"wait": ("wait", "done", "--for=failed"), "submit --wait": None},
    ),
    Case(
        "a manifest has faults, or a file does not exist",
        1,
        {
            "submit": ("submit", "{wrong}"),
            "lint": ("lint", "{wrong}"),
            "wrap": ("wrap", "{missing}", "--name", "a"),
            "quota check": ("quota", "check", "-f", "{wrong}"),
            "migrate check": ("migrate", "check", "{wrong}"),
        },
    ),
    Case("the name is taken", 1, {"submit": ("submit", "{taken}")}),
    Case("a check fails, or decisions differ", 1, {"debug check": None, "replay --diff": None}),
    Case(
        "the API server cannot be reached, or refuses",
        1,
        {
            "get": ("get", "--kubeconfig", "{nowhere}"),
            "hold": ("hold", "a", "--kubeconfig", "{nowhere}"),
            "submit": ("submit", "{taken}", "--kubeconfig", "{nowhere}"),
            "pause": ("pause", "--kubeconfig", "{nowhere}"),
        },
        is_of_all=True,
    ),
    Case(
        "wrong usage",
        2,
        {
            "get": ("get", "--nope"),
            "pause": ("pause", "--quota", "teams"),
            "wait": ("wait", "runs"),
            "completion": ("completion", "csh"),
        },
        is_of_all=True,
    ),
    Case(
        "Ctrl-C",
        130,
        {"queue --watch": None, "get --watch": None, "events --watch": None, "wait": None},
    ),
    Case(
        "Ctrl-C or SIGTERM, once it has begun to start",
        0,
        {"run": None, "ui": None, "demo --serve": None},
    ),
    Case("the Lease is lost", 1, {"run": None}),
)
