"""One object as the server sent it, read only as far as somebody wants to know it.

What identifies it is read at once, a tenth of the cost of all of it: most of what a server tells is
known already, or concerns fields that nobody looks at.
"""

from sys import intern
from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcad.kube.decode import REFUSED, decode
from mcad.kube.errors import BadAnswer
from mcad.kube.resource import Resource
from mcad.kube.types import Json


class Identity(Struct, frozen=True, rename={"version": "resourceVersion"}):
    """What tells one version of one object from all others; ``namespace`` may be ""."""

    name: str
    uid: str
    version: str
    namespace: str = ""


class _Head(Struct):
    metadata: Identity


_HEAD = msgspec.json.Decoder(_Head)


class Document:
    """The text of an object of a kind."""

    __slots__ = ("_resource", "_text", "identity")

    def __init__(self, text: Raw, resource: Resource) -> None:
        """Raises ``BadAnswer`` if the object cannot be told from others."""
        self._text = text
        self._resource = resource
        self.identity = _identify(text)

    def kept(self) -> "Document":
        """Itself, with a text of its own: what it came in need not be kept with it."""
        self._text = self._text.copy()
        return self

    def json(self) -> Json:
        """All of it; raises ``BadAnswer``."""
        try:
            value = decode(self._text)
        except ValueError as error:
            raise BadAnswer(f"an object that is no JSON: {error}") from error
        return self._complete(value)

    def pick(self, decoder: "msgspec.json.Decoder[Any]") -> Json:
        """The fields that a decoder of a TypedDict wants, or all of it if their types differ."""
        try:
            value = decoder.decode(self._text)
        except (*REFUSED, UnicodeDecodeError):
            return self.json()
        return self._complete(value)

    def _complete(self, value: Json) -> Json:
        # Lists of built-in kinds leave these out, and metadata-only objects carry others.
        value["apiVersion"], value["kind"] = self._resource.api_version, self._resource.kind
        # One string in memory for what several records of an object hold.
        metadata, identity = value["metadata"], self.identity
        metadata["name"], metadata["uid"] = identity.name, identity.uid
        if identity.namespace:
            metadata["namespace"] = intern(identity.namespace)
        return value


def _identify(text: Raw) -> Identity:
    try:
        identity = _HEAD.decode(text).metadata
    except (*REFUSED, UnicodeDecodeError):
        identity = _identify_slowly(text)
    if not (identity.name and identity.uid and identity.version):
        raise BadAnswer("an object without name, uid or resourceVersion")
    return identity


def _identify_slowly(text: Raw) -> Identity:
    try:
        obj = decode(text)
    except ValueError as error:
        raise BadAnswer(f"an object that is no JSON: {error}") from error
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise BadAnswer("an object without metadata")
    fields = {key: metadata.get(key) or "" for key in Identity.__struct_encode_fields__}
    try:
        return msgspec.convert(fields, Identity)
    except msgspec.ValidationError as error:
        raise BadAnswer("an object without name, uid or resourceVersion") from error
