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


_COLUMNS = "the embedded server describes the columns of its tables in words of its own"
_JSON = "what is wrong with a text that is no JSON is said by Python's parser, not by Go's"
_BETA = "Tables are given as v1 only; nobody but kubectl before 1.16 asked for v1beta1"
_ESTABLISHED = "a CRD is established when it is created; a real server takes some milliseconds"
_CRDS = "of the faults of a CRD the first are told, and no Go structures are quoted"
_SCALE = "a Scale is given as it is, whatever form is asked for"

KNOWN: tuple[Known, ...] = (
    Known("*", "*", "*columnDefinitions*.description", _COLUMNS),
    Known("*", "no JSON", "body.message", _JSON),
    Known("read_pages", "nonsense for a token", "body.message", _JSON),
    Known("crd_refused", "no storage", "body.*", _CRDS),
    Known("crd_refused", "two storages", "body.*", _CRDS),
    Known("crd_refused", "no versions", "*", _CRDS),
    Known("crd_refused", "schema without a type", "body.*", _CRDS),
    Known("crd_*", "defined", "body.status.*", _ESTABLISHED),
    Known("forms_accepted", "*as=Table;v=v1beta1;*", "*", _BETA),
    Known("forms_tables", "a scale as a table", "body.*", _SCALE),
)
