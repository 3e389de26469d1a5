"""Every condition that the core writes in these tests is one that it declares."""

from collections.abc import Iterator

import pytest

from mcad.core.state.condition_reasons import FALSE, TRUE
from mcad.core.state.entry import Entry


@pytest.fixture(autouse=True, scope="module")
def declared_conditions() -> Iterator[None]:
    """Writes of conditions fail if the reason is not in condition_reasons.py."""
    put = Entry.put_condition

    def checked(self, kind, now, *, status, reason, message=""):  # type: ignore[no-untyped-def]
        assert reason in (TRUE if status else FALSE).get(kind, {}), (kind, status, reason)
        put(self, kind, now, status=status, reason=reason, message=message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Entry, "put_condition", checked)
        yield
