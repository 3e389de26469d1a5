"""A group of processes ends whole."""

from pathlib import Path

from tests.controlplane.processes import ProcessGroup


def test_one_that_was_started_again_before_it_ended_is_ended_too(tmp_path: Path) -> None:
    group = ProcessGroup(tmp_path, remove=False)
    group.spawn("sleeper", ["sleep", "1000"], {"PATH": "/usr/bin:/bin"})
    first = group["sleeper"]
    group.respawn("sleeper")
    group.close()
    assert [one.poll() is None for one in (first, group["sleeper"])] == [False, False]
