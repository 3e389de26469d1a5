"""One fact of all nodes (the value of a label, the taints) as a small integer per row.

A requirement is checked once per value, not once per node, and the codes of a label are the
topology domains of its level.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mcad.core.nodes.columns import Mask, Packed, grown

Value = TypeVar("Value", bound=Hashable)

ABSENT = 0


class Codes(Packed, Generic[Value]):
    """``of`` has a code per row, ``ABSENT`` without the fact. All codes are below ``size``."""

    def __init__(self, rows: int) -> None:
        self.of: NDArray[np.int32] = np.zeros(rows, np.int32)
        self._codes: dict[Value, int] = {}
        self._values: list[Value | None] = [None]
        self._uses = [0]
        self._unused: list[int] = []

    @property
    def size(self) -> int:
        """One more than the highest code."""
        return len(self._uses)

    def values(self) -> Collection[Value]:
        """The values that rows have now."""
        return self._codes.keys()

    def value(self, code: int) -> Value | None:
        """The value of a code, None if no row has it."""
        return self._values[code]

    def code(self, value: Value) -> int:
        """The code of a value; ``size``, which no row has, if no row has the value."""
        return self._codes.get(value, self.size)

    def grow(self, rows: int) -> None:
        """Set the number of rows."""
        self.of = grown(self.of, rows)

    def set(self, at: int, value: Value | None) -> None:
        """Set the value of a row, None for no value."""
        before = int(self.of[at])
        code = ABSENT if value is None else self._enter(value)
        self.of[at] = code
        if before:
            self._leave(before)

    def _enter(self, value: Value) -> int:
        code = self._codes.get(value)
        if code is None:
            if not self._unused:
                self._unused.append(self.size)
                self._uses.append(0)
                self._values.append(None)
            code = self._codes[value] = self._unused.pop()
            self._values[code] = value
        self._uses[code] += 1
        return code

    def _leave(self, code: int) -> None:
        self._uses[code] -= 1
        if not self._uses[code]:
            value, self._values[code] = self._values[code], None
            if value is not None:
                del self._codes[value]
            self._unused.append(code)

    def are_in(self, values: Iterable[Value]) -> Mask:
        """Which rows have one of the values."""
        found = np.zeros(self.size + 1, np.bool_)
        found[[self.code(value) for value in values]] = True
        return found[self.of]

    def where(self, holds: Callable[[Value | None], bool]) -> Mask:
        """Which rows have a value for which ``holds`` is true; rows without a value pass None."""
        found = np.zeros(self.size, np.bool_)
        found[ABSENT] = holds(None)
        for value, code in self._codes.items():
            found[code] = holds(value)
        return found[self.of]
