"""What belongs to an AppWrapper: its items, the objects that those own, and the pods below.

Objects are found by the labels that the dispatcher gives them, and by owner references where an
operator made pods without these labels.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from mcad.api.labels import APPWRAPPER_UID, ITEM, labels_of, parse_number
from mcad.api.owner import Owner, controller_of
from mcad.api.wire import as_list, as_map, as_text
from mcad.client.session import AT_ONCE
from mcad.kube.client import Client, Selection
from mcad.kube.discovery import Discovery
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import PODS

Json = dict[str, Any]

CHAIN_MAX = 8  # owners between a pod and its item
_GROUPS_WITHOUT_OPERATORS = ("", "apps", "batch", "networking.k8s.io", "policy")


class ItemObject(Struct, frozen=True):
    """An item; ``live`` is None if it does not exist, and ``note`` says why it is not known."""

    number: int
    api_version: str
    kind: str
    name: str
    live: Json | None = None
    note: str = ""

    @property
    def uid(self) -> str:
        """The uid of the live object, "" if there is none."""
        return as_text(as_map(as_map(self.live).get("metadata")).get("uid"))


class OwnedObjects(Struct, frozen=True):
    """Everything below an AppWrapper. ``owners`` are objects between items and pods, by uid."""

    items: list[ItemObject]
    pods: list[Json]
    owners: dict[str, Json]

    @property
    def uids(self) -> set[str]:
        """The uids of all of these objects."""
        found = {one.uid for one in self.items if one.uid}
        return found | {str(pod["metadata"]["uid"]) for pod in self.pods} | set(self.owners)


async def owned_objects(client: Client, obj: Json) -> OwnedObjects:
    """Read them with the rights of the caller."""
    lookup = _Lookup(client, obj)
    gate = asyncio.Semaphore(AT_ONCE)

    async def read(item: ItemObject) -> ItemObject:
        async with gate:
            return await lookup.read(item)

    items = await asyncio.gather(*map(read, declared_items(obj)))
    pods = await pods_of(client, obj)
    known = {str(pod["metadata"]["uid"]) for pod in pods}
    if any(_may_own_more(item, pods) for item in items):
        everything, _ = await client.list_all(PODS, Selection(obj["metadata"]["namespace"]))
        pods += [pod for pod in everything if str(pod["metadata"]["uid"]) not in known]
    roots = {item.uid: item.number for item in items if item.uid}
    found = []
    for pod in pods:
        uid, root = str(pod["metadata"]["uid"]), await lookup.climb(pod, roots)
        if root in roots and item_of(pod) < 0:  # this copy gets the label that it lacks
            pod["metadata"]["labels"] = labels_of(pod) | {ITEM: str(roots[root])}
        if root or uid in known or uid in roots:
            found.append(pod)
    found.sort(key=lambda pod: (item_of(pod), pod["metadata"]["name"]))
    return OwnedObjects(list(items), found, lookup.between)


async def pods_of(client: Client, obj: Json) -> list[Json]:
    """The pods with the label of this AppWrapper."""
    selector = f"{APPWRAPPER_UID}={obj['metadata']['uid']}"
    found, _ = await client.list_all(
        PODS, Selection(obj["metadata"]["namespace"], label_selector=selector)
    )
    return found


def item_of(obj: Json) -> int:
    """The number of the item that an object belongs to, -1 if no label says it."""
    return parse_number(labels_of(obj).get(ITEM), -1)


def declared_items(obj: Json) -> list[ItemObject]:
    """The items of the present attempt; of the spec if there is none."""
    inventory = as_list(as_map(as_map(obj.get("status")).get("dispatch")).get("inventory"))
    if inventory:
        refs = [as_map(one) for one in inventory]
        return [
            ItemObject(n, _joined(one), as_text(one.get("kind")), as_text(one.get("name")))
            for n, one in enumerate(refs)
        ]
    return [
        ItemObject(
            number,
            as_text(template.get("apiVersion")),
            as_text(template.get("kind")),
            as_text(as_map(template.get("metadata")).get("name")) or "(name is generated)",
        )
        for number, template in enumerate(_templates(obj))
    ]


def _joined(ref: Json) -> str:
    group, version = as_text(ref.get("group")), as_text(ref.get("version"))
    return f"{group}/{version}" if group else version


def _templates(obj: Json) -> Iterable[Json]:
    spec = as_map(obj.get("spec"))
    for component in map(as_map, as_list(spec.get("components"))):
        yield as_map(component.get("template"))
    for item in map(as_map, as_list(as_map(spec.get("resources")).get("GenericItems"))):
        yield as_map(item.get("generictemplate"))


def _may_own_more(item: ItemObject, pods: Iterable[Json]) -> bool:
    """Whether an operator may have made pods without our labels for this item."""
    group = item.api_version.rpartition("/")[0]
    if item.live is None or group in _GROUPS_WITHOUT_OPERATORS:
        return False
    return not any(item_of(pod) == item.number for pod in pods)


class _Lookup:
    """Reads objects by kind and name; ``between`` are the owners that were found on the way."""

    def __init__(self, client: Client, obj: Json) -> None:
        self.between: dict[str, Json] = {}
        self._client = client
        self._discovery = Discovery(client)
        self._namespace = str(obj["metadata"]["namespace"])
        self._uid = str(obj["metadata"]["uid"])
        self._roots: dict[str, str] = {}  # of those in between
        self._elsewhere: set[str] = set()  # uids of owners of others, and of missing ones

    async def read(self, item: ItemObject) -> ItemObject:
        """The item with its live object; one of another AppWrapper counts as missing."""
        try:
            live = await self._get(item.api_version, item.kind, item.name)
        except KubeError as error:
            note = "forbidden" if isinstance(error, ApiError) and error.forbidden else "unknown"
            return ItemObject(*_fields(item), None, note)
        if live is None:
            return item
        if labels_of(live).get(APPWRAPPER_UID) != self._uid:
            return ItemObject(*_fields(item), None, "is another object")
        return ItemObject(*_fields(item), live)

    async def climb(self, pod: Json, roots: Iterable[str]) -> str:
        """The one of these uids to which the owners of a pod lead, "" if they do not.

        The owners in between are kept, and so is which ones lead nowhere: each is read once.
        """
        chain: list[Json] = []
        owner, root = controller_of(pod), ""
        for _ in range(CHAIN_MAX):
            if owner is None or owner.uid in self._elsewhere:
                break
            root = owner.uid if owner.uid in {*roots, self._uid} else self._roots.get(owner.uid, "")
            found = None if root else await self._owner(owner)
            if found is None:
                break
            chain.append(found)
            owner = controller_of(found)
        for one in chain:
            self._keep(one, root)
        return root

    def _keep(self, owner: Json, root: str) -> None:
        uid = str(owner["metadata"]["uid"])
        if root:
            self.between[uid], self._roots[uid] = owner, root
        else:
            self._elsewhere.add(uid)

    async def _owner(self, owner: Owner) -> Json | None:
        version = f"{owner.group}/{owner.version}" if owner.group else owner.version
        try:
            live = await self._get(version, owner.kind, owner.name)
        except KubeError:
            live = None
        if live is None or live["metadata"]["uid"] != owner.uid:
            self._elsewhere.add(owner.uid)
            return None
        return live | {"kind": owner.kind}

    async def _get(self, api_version: str, kind: str, name: str) -> Json | None:
        resource = await self._discovery.find(api_version, kind)
        if resource is None:
            return None
        try:
            return await self._client.get(resource, self._namespace, name)
        except ApiError as error:
            if error.not_found or error.invalid:
                return None
            raise


def _fields(item: ItemObject) -> tuple[int, str, str, str]:
    return item.number, item.api_version, item.kind, item.name
