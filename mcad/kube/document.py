"""One object as the server sent it, read only as far as is wanted.

What identifies it is read at once, together with the fields that its reader wants of every object:
most of what a server tells concerns fields that are never looked at.
"""

from sys import intern
from typing import Any, TypedDict

import msgspec
from msgspec import Raw, Struct

from mcad.kube.decode import REFUSED, decode
from mcad.kube.errors import BadAnswer
from mcad.kube.resource import Resource
from mcad.kube.types import Json

Picks = msgspec.json.Decoder[Any]
"""Reads some fields of an object into dicts (of a TypedDict); those of ``HeadPick`` among them."""


class HeadPick(TypedDict, total=False):
    """The metadata that identify an object."""

    name: Any
    namespace: Any
    uid: Any
    resourceVersion: Any


class _Headed(TypedDict, total=False):
    metadata: HeadPick


HEAD: Picks = msgspec.json.Decoder(_Headed)
"""What identifies an object, and no more: a quarter of the cost of all of it."""


WHOLE: Picks = msgspec.json.Decoder()
"""All of it, for objects that are going to be read whole."""


class Identity(Struct, frozen=True):
    """What tells one version of one object from all others; ``namespace`` may be ""."""

    name: str
    uid: str
    version: str
    namespace: str


class Document:
    """The text of an object of a kind."""

    __slots__ = ("_picked", "_picks", "_resource", "_text", "identity")

    def __init__(self, text: Raw, resource: Resource, picks: Picks = HEAD) -> None:
        """``picks`` is what will be asked for. Raises ``BadAnswer`` if the object cannot be
        distinguished from others."""
        self._text = text
        self._resource = resource
        self._picks, picked = _read(text, picks)
        self._picked: Json | None = picked
        self.identity = _identify(picked)

    def kept(self) -> "Document":
        """A document with a text of its own: neither the answer nor decoded parts are kept."""
        self._text, self._picked = self._text.copy(), None
        return self

    def json(self) -> Json:
        """All of it, the caller's own; raises ``BadAnswer``."""
        whole = self._picked if self._picks is WHOLE else None
        if whole is None:
            return self._complete(_decode(self._text))
        self._picked = None
        return self._complete(whole)

    def pick(self, picks: Picks) -> Json:
        """The fields that ``picks`` wants, or all of it if that was read, or their types differ.

        Raises ``BadAnswer`` unless they were read at once.
        """
        if self._picked is None or self._picks not in (picks, WHOLE):
            self._picks, self._picked = picks, _pick(self._text, picks)
        return self._complete(self._picked)

    def _complete(self, value: Json) -> Json:
        # Lists of built-in kinds leave these out, and metadata-only objects carry others.
        value["apiVersion"], value["kind"] = self._resource.api_version, self._resource.kind
        # One string in memory for what several records of an object hold.
        metadata, identity = value["metadata"], self.identity
        metadata["name"], metadata["uid"] = identity.name, identity.uid
        if identity.namespace:
            metadata["namespace"] = identity.namespace
        return value


def _read(text: Raw, picks: Picks) -> tuple[Picks, Json]:
    """What was picked; only the head of an object that cannot be read whole, which is known by
    that."""
    try:
        return picks, _pick(text, picks)
    except BadAnswer:
        if picks is not WHOLE:
            raise
    return HEAD, _pick(text, HEAD)


def _pick(text: Raw, picks: Picks) -> Json:
    try:
        value: Json = picks.decode(text)
    except (*REFUSED, UnicodeDecodeError):
        return _decode(text)
    return value


def _decode(text: Raw) -> Json:
    try:
        value: Json = decode(text)
    except ValueError as error:
        raise BadAnswer(f"an object that is no JSON: {error}") from error
    return value


def _identify(obj: Any) -> Identity:
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise BadAnswer("an object without metadata")
    name, uid, version = metadata.get("name"), metadata.get("uid"), metadata.get("resourceVersion")
    namespace = metadata.get("namespace") or ""
    are_texts = type(name) is type(uid) is type(version) is type(namespace) is str
    if not (are_texts and name and uid and version):
        raise BadAnswer("an object without name, uid or resourceVersion")
    return Identity(name, uid, version, intern(namespace))
