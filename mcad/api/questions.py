"""What a dispatcher is asked: what it would do if something were different."""

from __future__ import annotations

from msgspec import Struct, ValidationError, json, to_builtins

from mcad.api.wire import Json, Map


class Changes(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What would be different: the options of ``mcad what-if``.

    ``nodes``: that many more, like the node ``like``. ``left_out``: AppWrappers that are gone, as
    NAME or NAMESPACE/NAME. ``quota``: ("TREE/NODE", "cpu=40,memory=1Gi"). ``assignments``: settings
    of the dispatcher, KEY=VALUE.
    """

    nodes: int | None = None
    like: str | None = None
    left_out: tuple[str, ...] = ()
    quota: tuple[tuple[str, str], ...] = ()
    assignments: tuple[str, ...] = ()


class Question(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The changes with ``manifests`` (AppWrappers, with namespaces, that are created), or a
    ``drain`` of these nodes, or ``subtrees``: QuotaSubtrees that are applied."""

    changes: Changes = Changes()
    manifests: tuple[Map, ...] = ()
    drain: tuple[str, ...] = ()
    subtrees: tuple[Map, ...] = ()

    @property
    def is_of_the_cluster(self) -> bool:
        """Whether it is about more than AppWrappers that are created."""
        return self.changes != Changes() or bool(self.drain or self.subtrees)

    @property
    def document(self) -> Json:
        """As JSON."""
        return to_builtins(self)


class _Asked(Struct):
    """The body of a request, an object like those of Kubernetes."""

    spec: Question


def read_question(body: bytes) -> Question:
    """The question in the body of a request; raises ``ValueError``."""
    try:
        return json.decode(body, type=_Asked).spec
    except ValidationError as error:
        raise ValueError(f"the question is not understood: {error}") from error
