"""The verbs of an API server on objects: create, update, patch, delete, and what must hold.

Everything is synchronous and nothing waits: one call is one transaction. Simulated controllers
call it directly, ``server.py`` on behalf of requests. Objects that go out are those in the store
and must not be changed; objects that come in are copied.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from random import Random

from mcad.kube.clock import Clock
from mcad.kube.port import Request, Response
from mcad.kube.types import Json
from mcad.sim import admission, deletion, failures, strategies
from mcad.sim.copying import copied, with_own_metadata
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Cause, Failure, Undecodable
from mcad.sim.kinds import CRDS, EVENTS, Kind, KindTable
from mcad.sim.objects import crdrules
from mcad.sim.objects import metadata as metadata_rules
from mcad.sim.objects.checks import Checks
from mcad.sim.patching import apply
from mcad.sim.store import Key, Store
from mcad.sim.times import seconds
from mcad.sim.versions import from_stored, to_stored
from mcad.sim.writes import Write, by_controller

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand: no vowels, no words
_SUFFIX_LENGTH = 5
_BASE_MAX = 63 - _SUFFIX_LENGTH


class Registry:
    """The API server behind its HTTP."""

    def __init__(self, clock: Clock, rng: Random, store: Store | None = None) -> None:
        """Empty but for the namespaces that every cluster has."""
        self.clock = clock
        self.rng = rng
        self.store = store or Store()
        self.webhooks: list[Callable[[Kind, Json], None]] = []
        """Each is asked about every object that is to be created, and raises Failure to deny it."""
        self.aggregated: dict[str, Callable[[Request], Awaitable[Response]]] = {}
        """By API group: where its requests are forwarded to, as by an APIService."""
        self.kinds = KindTable()
        self.checks = Checks()
        for name in (*admission.IMMORTAL, "kube-node-lease"):
            self.create(self.kind("v1", "Namespace"), None, {"metadata": {"name": name}})

    def kind(self, api_version: str, name: str) -> Kind:
        """A kind that is known to be served; KeyError otherwise."""
        found = self.kinds.by_kind(api_version, name)
        if found is None:
            raise KeyError(f"{api_version} {name}")
        return found

    # -- reads ---------------------------------------------------------------------------------

    def find(self, kind: Kind, key: Key) -> Json | None:
        """The object, or None."""
        found = self.store.get(kind.storage, key)
        return None if found is None else from_stored(kind, found)

    def get(self, kind: Kind, key: Key) -> Json:
        """The object; raises Failure 404."""
        found = self.find(kind, key)
        if found is None:
            raise failures.not_found(kind, key[1])
        return found

    def list_all(self, kind: Kind, namespace: str | None = None) -> list[Json]:
        """All objects, in the order of namespace and name."""
        return [from_stored(kind, one) for _, one in self.store.items(kind.storage, namespace)]

    # -- writes --------------------------------------------------------------------------------

    def create(
        self, kind: Kind, namespace: str | None, body: Json, how: Write | None = None
    ) -> Json:
        """The created object; raises Failure."""
        how = how or by_controller()
        # Strategies and admission complete a new object in place.
        obj = self._received(kind, namespace, copied(body) if how.trusted else body, how)
        metadata = obj["metadata"]
        self._set_name(metadata)
        if kind.namespaced:
            admission.check_namespace(self.store, kind, metadata["namespace"], metadata["name"])
        metadata_rules.disown(metadata)
        version = metadata.pop("resourceVersion", None) or "0"
        metadata["uid"] = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        metadata["creationTimestamp"] = seconds(self.clock.now_us())
        if kind.storage == CRDS:
            _refuse(kind, obj, crdrules.faults(obj))
        obj = strategies.prepare_create(kind, obj, self.clock.now_us())
        if kind.storage == ("", "pods"):
            obj = admission.admit_pod(self.store, kind, obj)
        if not how.trusted:
            _refuse(kind, obj, self.checks.create_faults(kind, obj))
        for webhook in self.webhooks:
            webhook(kind, obj)
        if version != "0":
            raise Failure(500, "", "resourceVersion should not be set on objects to be created")
        key = key_of(obj)
        present = self.store.get(kind.storage, key)
        if present is not None:
            is_going = "deletionTimestamp" in present["metadata"]
            raise failures.already_exists(kind, metadata["name"], is_going=is_going)
        return self._put(kind, key, to_stored(kind, obj), how)

    def update(self, kind: Kind, key: Key, body: Json, how: Write | None = None) -> Json:
        """The replaced object. ``metadata.resourceVersion`` in the body, if any, is a fence."""
        how = how or by_controller()
        old = self.get(kind, key)
        new = self._received(kind, key[0], body, how)
        check_name(new, key[1])
        check_uid(kind, new, old, dry_run=how.dry_run)
        return self._replace(kind, new, old, how)

    def update_status(self, kind: Kind, obj: Json) -> Json:
        """Write ``status`` of an object that a simulated controller has read, if it is fresh."""
        key = key_of(obj)
        return self.update(kind, key, obj, Write(trusted=True, subresource="status"))

    def patch(
        self, kind: Kind, key: Key, change: Callable[[Json], Json], how: Write | None = None
    ) -> Json:
        """The object after ``change``, which gets the present one and returns another."""
        how = how or by_controller()
        old = self.get(kind, key)
        changed = change(old)
        try:
            new = self._received(kind, key[0], changed, how)
        except Undecodable as error:
            raise failures.invalid_patch(changed, error.why) from error
        check_name(new, key[1])
        return self._replace(kind, new, old, how)

    def apply(
        self, kind: Kind, key: Key, config: Json, how: Write | None = None
    ) -> tuple[Json, bool]:
        """The object after a server-side apply, and whether it is new; raises Failure."""
        live = self.find(kind, key)
        if live is None:
            metadata = (config.get("metadata") or {}) | {"name": key[1]}
            return self.create(kind, key[0], config | {"metadata": metadata}, how), True
        return self.update(kind, key, apply(live, config), how), False

    def delete(
        self, kind: Kind, key: Key, options: Deletion | None = None, *, dry_run: bool = False
    ) -> Json:
        """What is left: the object if something keeps it, otherwise a Status."""
        options = options or Deletion()
        old = self.get(kind, key)
        deletion.check(kind, old, options)
        verdict = deletion.judge(kind, old, options, self.clock.now_us())
        left, how = verdict.obj, Write(dry_run=dry_run or options.dry_run)
        if left is not old and left != old:
            left = self._put(kind, key, to_stored(kind, left), how)
        if not verdict.removes:
            return left
        if not how.dry_run:
            left = self._remove(kind, key)
        whole = kind.storage in deletion.ANSWERS_WITH_OBJECT
        return left if whole else failures.success(kind, key[1], old["metadata"]["uid"])

    # -- parts ---------------------------------------------------------------------------------

    def _received(self, kind: Kind, namespace: str | None, body: Json, how: Write) -> Json:
        """An own copy of what came in, checked for what concerns every kind; raises Failure."""
        # A trusted writer leaves alone what it has written, as all do with what they have read.
        obj: Json = with_own_metadata(body) if how.trusted else copied(body)
        obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
        metadata = obj["metadata"] = obj.get("metadata") or {}
        if kind.namespaced:
            given = metadata.setdefault("namespace", namespace) or namespace
            if given != namespace:
                raise failures.bad_request(
                    "the namespace of the provided object does not match the namespace sent on"
                    " the request"
                )
            metadata["namespace"] = namespace
        else:
            metadata.pop("namespace", None)
        return obj if how.trusted else self.checks.complete(kind, obj, how)

    def _set_name(self, metadata: Json) -> None:
        base = metadata.get("generateName")
        if not metadata.get("name") and base:
            suffix = "".join(self.rng.choice(_SUFFIX) for _ in range(_SUFFIX_LENGTH))
            metadata["name"] = base[:_BASE_MAX] + suffix
        metadata.setdefault("name", "")

    def _replace(self, kind: Kind, new: Json, old: Json, how: Write) -> Json:
        metadata_rules.check_version(kind, new, old, trusted=how.trusted)
        # Found twice: by the generic code of a real server, and then by the kind's own checks.
        faults = [] if how.trusted else metadata_rules.update_faults(new, old)
        metadata_rules.keep(new, old)
        if kind.storage == CRDS:
            faults += crdrules.change_faults(new, old)
        new = strategies.prepare_update(kind, new, old, how.subresource)
        if not how.trusted:
            faults += self.checks.update_faults(kind, new, old, how.subresource)
            _refuse(kind, new, faults)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        key = key_of(old)
        if deletion.is_due(kind, new):
            if not how.dry_run:
                self._remove(kind, key)
            return new
        if new == old:
            return old  # no write, no event, no new version
        return self._put(kind, key, to_stored(kind, new), how)

    def _put(self, kind: Kind, key: Key, obj: Json, how: Write) -> Json:
        if how.dry_run:
            return from_stored(kind, obj)
        written = self.store.put(kind.storage, key, obj)
        if kind.storage == CRDS:
            self._serve(written)
        return from_stored(kind, written)

    def _serve(self, crd: Json) -> None:
        """Serve what a CRD defines; objects that were written before are read by its schema."""
        name, versions = crd["metadata"]["name"], crd["spec"]["versions"]
        before = {kind.version: kind.schema for kind in self.kinds.custom(name)}
        self.kinds.set_crd(crd)
        stored = {one["name"] for one in versions if one.get("storage")}
        for kind in self.kinds.custom(name):
            if kind.version in stored and before.get(kind.version, kind.schema) != kind.schema:
                self.store.recast(kind.storage, partial(self.checks.as_read, kind))

    def _remove(self, kind: Kind, key: Key) -> Json:
        removed = self.store.remove(kind.storage, key)
        if kind.storage == CRDS:
            self.kinds.remove_crd(key[1])
        return from_stored(kind, removed)


def key_of(obj: Json) -> Key:
    """Namespace ("" if it has none) and name."""
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _refuse(kind: Kind, obj: Json, faults: list[Cause]) -> None:
    if faults:
        if kind.storage == EVENTS:
            kind = replace(kind, group="")  # they are worded with the core group, always
        raise failures.invalid(kind, obj["metadata"].get("name") or "", faults)


def check_name(new: Json, name: str) -> None:
    """The name in a body is that of the path; raises Failure 400."""
    given = (new.get("metadata") or {}).get("name")
    if not given:
        raise failures.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable:"
            " name must be provided"
        )
    if given != name:
        raise failures.bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def check_uid(kind: Kind, new: Json, old: Json, *, dry_run: bool = False) -> None:
    """The uid in a body, if any, is that of the object; raises Failure 409."""
    given, live = (new.get("metadata") or {}).get("uid"), old["metadata"]["uid"]
    if given and given != live:
        group = kind.group if kind.is_custom else ""
        root = "" if dry_run else "/registry"  # as the storage of a dry run calls it
        place = "/".join((root, *(one for one in (group, kind.plural, *key_of(old)) if one)))
        raise failures.conflict(
            kind,
            old["metadata"]["name"],
            f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0,"
            f" AdditionalErrorMsg: Precondition failed: UID in precondition: {given},"
            f" UID in object meta: {live}",
        )
