"""A command or an option that is gone says what to type now."""

import click
import pytest
from click.testing import CliRunner

from mcad.cli.main import COMMANDS, main
from mcad.cli.removed import OTHER_WORDS, REMOVED


@pytest.mark.parametrize("typed", REMOVED)
def test_what_is_gone_says_what_to_type_now(typed: str) -> None:
    done = CliRunner().invoke(main, typed.split())
    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"error: `mcad {typed}` is gone: {REMOVED[typed]} (see `mcad ")


@pytest.mark.parametrize("typed", OTHER_WORDS)
def test_the_word_of_another_program_leads_to_the_command(typed: str) -> None:
    assert typed not in COMMANDS
    done = CliRunner().invoke(main, [typed, "x"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: `mcad {typed}` is no command: {OTHER_WORDS[typed]} (see")
    assert OTHER_WORDS[typed].split()[1].rstrip("`") in COMMANDS


def test_deletion_is_not_taken_for_a_release() -> None:
    done = CliRunner().invoke(main, ["delete", "x"])
    assert "`mcad cancel` deletes AppWrappers" in done.stderr
    assert "release" not in done.stderr


def test_a_value_may_follow_the_option() -> None:
    for given in (["--set", "policy=Backfill"], ["--set=policy=Backfill"]):
        done = CliRunner().invoke(main, ["replay", "folder", *given])
        assert "`mcad replay --set` is gone" in done.stderr


@pytest.mark.parametrize("typed", ["replay --sat x", "queue --anonymous x", "relpay", "replay"])
def test_other_mistakes_are_not_said_to_be_gone(typed: str) -> None:
    done = CliRunner().invoke(main, typed.split())
    assert done.exit_code == 2
    assert "is gone" not in done.stderr


@pytest.mark.parametrize("typed", REMOVED)
def test_what_is_replaced_is_not_there(typed: str) -> None:
    *names, last = typed.split()
    command: click.Command = main
    context = click.Context(main)
    for name in names:
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        command = found
    if last.startswith("-"):
        assert all(last not in one.opts for one in command.params)
    else:
        assert isinstance(command, click.Group)
        assert last not in command.list_commands(context)
