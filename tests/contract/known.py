"""The differences that stay, each with its reason; docs/inside/simulator.md tells them in words.

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
_BETA = "Tables are given as v1 only; only kubectl before 1.16 asked for v1beta1"
_ESTABLISHED = "a CRD is established when it is created; a real server takes some milliseconds"
_CRDS = "of the faults of a CRD the first are reported, and no Go structures are quoted"
_SCALE = "a Scale is given as it is, whatever form is asked for"

_TYPES = "a value of another type is refused in plain words, with its field"
_READ = "Refusals name the forms of a patch that the embedded server reads"
_DIFF = "the embedded server does not quote Go structures, nor the differences between two"
_PATCHED = "the object that a patch has made is quoted in another order and without managedFields"
_FORMATS = "formats of integers are not distinguished"
_REPLICAS = "the path of a scale is not checked for its type when an object is written"
_TWICE = "a key that is there twice in one JSON object is not noticed"
_OTHER_KIND = "an object of another kind is refused for that, before anything else, in plain words"
_WARNINGS = "of the warnings about pods none is given"

KNOWN: tuple[Known, ...] = (
    Known("*", "*", "*columnDefinitions*.description", _COLUMNS),
    Known("*", "no JSON", "body.message", _JSON),
    Known("create_types", "empty body", "body.message", _JSON),
    Known("read_pages", "nonsense for a token", "body.message", _JSON),
    Known("create_metadata", "*that is no text", "body.message", _TYPES),
    Known("create_metadata", "labels that are a list", "body.message", _TYPES),
    Known("create_types", "data of numbers", "body.message", _TYPES),
    Known("crd_objects", "* of a number", "body.message", _TYPES),
    Known("workload_bad_*", "* a text", "body.message", _TYPES),
    Known("workload_bad_deployments", "secret that is no base64", "body.message", _TYPES),
    Known("create_types", "*", "body.message", _OTHER_KIND),
    Known("sub_scale", "another kind", "body.message", _OTHER_KIND),
    Known("update_metadata", "another kind", "body.message", _OTHER_KIND),
    Known("workload_bad_deployments", "group of another", "body.message", _OTHER_KIND),
    Known("patch_types", "*", "body.*", _READ),
    Known("patch_merge", "no body", "body.*", _READ),
    Known("create_keys_twice", "strict", "status", _TWICE),
    Known("create_keys_twice", "warned", "headers.Warning", _TWICE),
    Known("create_keys_twice", "warned", "body.metadata.uid", _TWICE),
    Known("create_field_validation", "strict patch", "body.*message", _PATCHED),
    Known("patch_merge", "kind", "body.*message", _PATCHED),
    Known("patch_merge", "apiVersion", "body.*message", _PATCHED),
    Known("patch_merge", "data a text", "body.*message", _PATCHED),
    Known("patch_merge", "label of a number", "body.*message", _PATCHED),
    Known("patch_merge", "its kind", "body.*", _PATCHED),
    Known("patch_merge", "its apiVersion", "body.*", _PATCHED),
    Known("patch_strategic", "a list for a map", "body.*message", _PATCHED),
    Known("crd_objects", "unknown by a patch", "body.*message", _PATCHED),
    Known("update_immutable", "its *", "body.*message", _DIFF),
    Known("aw_refused", "priority a fraction", "body.*message", _FORMATS),
    Known("crd_objects", "a text for a number", "body.*", _REPLICAS),
    Known("crd_objects", "spec a text", "body.*", _REPLICAS),
    Known("crd_refused", "no storage", "body.*", _CRDS),
    Known("crd_refused", "two storages", "body.*", _CRDS),
    Known("crd_refused", "no versions", "*", _CRDS),
    Known("crd_refused", "schema without a type", "body.*", _CRDS),
    Known("crd_*", "defined", "body.status.*", _ESTABLISHED),
    Known("workload_defaults", "pod with a warning", "headers.Warning", _WARNINGS),
    Known("workload_jobs", "template", "body.*message", _DIFF),
    Known("workload_bad_pods", "name of the container", "body.*message", _DIFF),
    Known("forms_accepted", "*as=Table;v=v1beta1;*", "*", _BETA),
    Known("forms_tables", "a scale as a table", "body.*", _SCALE),
)
