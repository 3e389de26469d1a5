"""Fields by which a client suspends an object: its controller makes no pods until another client
resumes it."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from mcad.api.located_fields import shorten
from mcad.api.wire import Json, Map, as_list, as_map, as_text, dig, parse_instant

_OURS = "mcad"  # the field manager of what the dispatcher creates


def _is_true(value: Json) -> bool:
    return value is True


def _is_zero(value: Json) -> bool:
    return value == 0 and isinstance(value, int) and not isinstance(value, bool)


def _is_given(value: Json) -> bool:
    return value is not None


def _is_word_true(value: Json) -> bool:
    return as_text(value).lower() == "true"


def _never(_: Map) -> bool:
    return False


class Switch(Struct, frozen=True):
    """A field that suspends the whole object as long as ``is_on`` holds for its value, ``unless``
    the object says otherwise. ``says`` is its value in words."""

    keys: tuple[str, ...]
    says: str = "is true"
    is_on: Callable[[Json], bool] = _is_true
    unless: Callable[[Map], bool] = _never

    @property
    def field(self) -> str:
        """The field as it is written in messages."""
        return field_of(self.keys)

    def holds(self, obj: Map) -> bool:
        """Whether it suspends this object."""
        return self.is_on(dig(obj, *self.keys)) and not self.unless(obj)


def suspend_at(path: str) -> Switch:
    """A boolean field at a dotted path."""
    return Switch(tuple(path.split(".")))


def zero_at(path: str) -> Switch:
    """A count that pauses the object when it is 0."""
    return Switch(tuple(path.split(".")), "is 0", _is_zero)


def annotated(name: str, *, true: bool = False) -> Switch:
    """An annotation that suspends by being there, or by being ``true``."""
    keys = ("metadata", "annotations", name)
    return Switch(keys, "is true", _is_word_true) if true else Switch(keys, "is set", _is_given)


def field_of(keys: Iterable[str]) -> str:
    """A field as it is written in messages: ``spec.workerGroupSpecs[0].suspend``."""
    text = ""
    for key in keys:
        if key.startswith("[") or not text:
            text += key
        else:
            text += f"[{key}]" if "/" in key or "-" in key else f".{key}"
    return text


def told(obj: Map, keys: tuple[str, ...], says: str = "is true") -> str:
    """``spec.suspend is true, set by kubectl-patch``, as far as the object tells."""
    client = _client(obj, keys)
    if client == _OURS:
        return f"{field_of(keys)} {says}, as in the manifest"
    by = f", set by {shorten(client)}" if client else ""
    return f"{field_of(keys)} {says}{by}"


def _client(obj: Map, keys: tuple[str, ...]) -> str:
    """The manager that was the last to write a field, by ``metadata.managedFields``; "" if that
    does not tell."""
    writes = [
        (parse_instant(entry.get("time")), as_text(entry.get("manager")))
        for entry in map(as_map, as_list(as_map(obj.get("metadata")).get("managedFields")))
        if not entry.get("subresource") and _owns(entry.get("fieldsV1"), keys)
    ]
    return max(writes, default=(0, ""))[1]


def _owns(fields: Json, keys: tuple[str, ...]) -> bool:
    """Whether a set of fields (FieldsV1) has this one. An empty map is a field as a whole."""
    for key in keys:
        fields = as_map(fields).get(f"f:{key}")
        if not fields:
            return isinstance(fields, dict)
    return True
