"""The annotation by which an AppWrapper opts out of eviction.

Such an AppWrapper keeps its room without limit, so the annotation has an effect only in the
namespaces of the setting ``neverPreempt``.
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
    """Whether an AppWrapper with these annotations is never evicted, and warnings about them.

    ``permitted`` holds the namespaces in which the annotation has an effect, ``*`` for all.
    """
    value = as_map(annotations).get(ANNOTATION)
    if value in (None, "false"):
        return False, ()
    where = f"metadata.annotations.{ANNOTATION}"
    if value != "true":
        return False, (f'{where}: must be "true" or "false", not {describe(value)}; ignored.',)
    if EVERYWHERE in permitted or namespace in permitted:
        return True, ()
    message = f"has no effect in namespace {namespace}; an administrator can add it to "
    return False, (f"{where}: {message}neverPreempt.",)
