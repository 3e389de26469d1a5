"""``make golden``: writes every golden file of the embedded cluster anew, from the real one."""

from __future__ import annotations

from tests.controlplane.controlplane import ControlPlane
from tests.golden import protobuf, server


def main() -> None:
    """Write what has changed, and say so."""
    with ControlPlane() as plane:
        files = [*server.renewed(plane), (protobuf.NUMBERS, protobuf.table())]
    for path, text in files:
        is_same = path.exists() and path.read_text() == text
        path.write_text(text)
        print(f"{'as it was' if is_same else 'WRITTEN'}: {path.name}")


if __name__ == "__main__":
    main()
