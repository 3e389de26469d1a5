"""The differences that stay, each with its reason; docs/simulator.md tells them in words.

Patterns are those of ``fnmatch``. An entry that matches nothing any more fails the suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Known:
    """Where answers may differ: in which script, at which step, at which path of the answer."""

    script: str
    step: str
    path: str
    why: str

    def covers(self, script: str, step: str, path: str) -> bool:
        """Whether a difference is this one."""
        return (
            fnmatchcase(script, self.script)
            and fnmatchcase(step, self.step)
            and fnmatchcase(path, self.path)
        )


KNOWN: tuple[Known, ...] = ()
