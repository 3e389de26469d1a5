"""The audit log is read whatever a kill left in it."""

import json
from pathlib import Path

from tests.controlplane import audit


def test_half_a_line_does_not_count(tmp_path: Path) -> None:
    line = json.dumps(
        {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": "a"}, separators=(",", ":")
    )
    log = tmp_path / "audit.log"
    log.write_text(f"{line}\n{line[:50]}{line}\n{line[:50]}")
    assert [one["auditID"] for one in audit.events(log)] == ["a", "a"]


def test_a_log_ends_where_its_last_line_does(tmp_path: Path) -> None:
    """However far from the end of the file that is."""
    log = tmp_path / "audit.log"
    for whole in ("", "a\n", "a\nb\n", "a" * 3 * audit.BLOCK + "\n"):
        for half in ("", "c", "c" * audit.BLOCK, "c" * (audit.BLOCK + 1)):
            log.write_text(whole + half)
            assert audit.end(log) == len(whole)
