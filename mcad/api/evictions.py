"""An annotation by which an AppWrapper says that it may not be evicted; it has to be permitted.

It keeps its room for as long as it likes, so the annotation counts only where the setting
``neverPreempt`` says.
"""

from collections.abc import Collection

from mcad.api.labels import GROUP
from mcad.api.located_fields import describe
from mcad.api.wire import Json, as_map

ANNOTATION = f"{GROUP}/never-preempt"
EVERYWHERE = "*"


def read_never_preempt(
    annotations: Json, namespace: str, permitted: Collection[str]
) -> tuple[bool, tuple[str, ...]]:
    """Whether an AppWrapper with these annotations is never evicted, and what is wrong with them.

    ``permitted`` holds the namespaces in which it counts, ``*`` for all.
    """
    said = as_map(annotations).get(ANNOTATION)
    if said in (None, "false"):
        return False, ()
    where = f"metadata.annotations.{ANNOTATION}"
    if said != "true":
        return False, (f'{where}: must be "true" or "false", not {describe(said)}; ignored.',)
    if EVERYWHERE in permitted or namespace in permitted:
        return True, ()
    message = f"has no effect in namespace {namespace}; an administrator can add that to "
    return False, (f"{where}: {message}neverPreempt.",)
