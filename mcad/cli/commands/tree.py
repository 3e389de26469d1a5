"""``mcad tree``: an AppWrapper, its items, the objects that these own, and the pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import click

from mcad.api.owner import controller_of
from mcad.api.wire import as_list, as_map, as_text
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import namespace_option
from mcad.cli.arguments.one_appwrapper import one_option, read_one
from mcad.cli.arguments.options import Output, output_options, target_options
from mcad.cli.pages.output_forms import echo_form
from mcad.cli.pages.tables import NONE, age, echo, table
from mcad.client.appwrappers.owned_objects import ItemObject, OwnedObjects, item_of, owned_objects
from mcad.client.appwrappers.pod_state import node_of, pod_state
from mcad.client.appwrappers.state import state
from mcad.client.scope import Target

Json = dict[str, Any]

TITLES = ("NAME", "STATE", "NODE", "AGE")


@click.command()
@one_option
@namespace_option
@target_options
@output_options("json", "yaml")
def tree(name: str, namespace: str | None, target: Target, output: Output) -> None:
    """Show an AppWrapper with its items, their objects and the pods.

    Items that are not created yet are shown as such. An object that you may not read is shown
    as forbidden, and its pods are below its item all the same.
    """
    root = asyncio.run(_read(name, namespace, target))
    if output.form:
        echo_form(root, output.form, headers=not output.no_headers)
        return
    now = environment().clock.now_us()
    lines = [
        (text, node["state"] or NONE, node["node"] or NONE, _age(node, now))
        for text, node in _drawn(root)
    ]
    echo(table(TITLES, lines, headers=not output.no_headers, palette=output.palette))


async def _read(name: str, namespace: str | None, target: Target) -> Json:
    async with environment().connect(target, watches=False) as session:
        obj = await read_one(session, name, namespace)
        owned = await owned_objects(session.client, obj)
    return grown(obj, owned)


def grown(obj: Json, owned: OwnedObjects) -> Json:
    """The tree as nested nodes."""
    root = _node("AppWrapper", obj["metadata"]["name"], state(obj), obj)
    by_uid: dict[str, Json] = {}
    by_item: dict[int, Json] = {}
    for item in owned.items:
        node = by_item[item.number] = _item_node(item)
        if item.uid:
            by_uid[item.uid] = node
        root["children"].append(node)
    for uid, owner in owned.owners.items():
        by_uid[uid] = _node(owner["kind"], owner["metadata"]["name"], _conditions(owner), owner)
    for uid, owner in owned.owners.items():
        _parent(owner, by_uid, by_item, root)["children"].append(by_uid[uid])
    for pod in owned.pods:
        node = _node("Pod", pod["metadata"]["name"], pod_state(pod), pod) | {"node": node_of(pod)}
        own = by_uid.get(str(pod["metadata"]["uid"]))
        if own is not None:  # it is an item itself
            own.update(node)
        else:
            _parent(pod, by_uid, by_item, root)["children"].append(node)
    return root


def _parent(obj: Json, by_uid: Json, by_item: dict[int, Json], root: Json) -> Json:
    owner = controller_of(obj)
    found: Json | None = by_uid.get(owner.uid) if owner is not None else None
    return found or by_item.get(item_of(obj)) or root


def _item_node(item: ItemObject) -> Json:
    if item.live is None:
        return _node(item.kind, item.name, item.note or "not created", {})
    return _node(item.kind, item.name, _conditions(item.live), item.live)


def _node(kind: str, name: str, said: str, obj: Json) -> Json:
    metadata = as_map(obj.get("metadata"))
    if "deletionTimestamp" in metadata:
        said = "Terminating"
    created = as_text(metadata.get("creationTimestamp"))
    return {
        "kind": kind, "name": name, "state": said, "node": "", "created": created, "children": []
    }  # fmt: skip


def _conditions(obj: Json) -> str:
    """The conditions that are true: ``Available,Progressing``."""
    conditions: Iterable[Json] = map(as_map, as_list(as_map(obj.get("status")).get("conditions")))
    return ",".join(as_text(one.get("type")) for one in conditions if one.get("status") == "True")


def _age(node: Json, now_us: int) -> str:
    return age(node["created"], now_us) if node["created"] else NONE


def _drawn(node: Json, before: str = "", below: str = "") -> Iterator[tuple[str, Json]]:
    """The nodes with their lines; ``below`` is the indentation of their children."""
    yield f"{before}{node['kind']}/{node['name']}", node
    *others, last = node["children"] or [None]
    for child in others:
        yield from _drawn(child, f"{below}├─", f"{below}│ ")
    if last is not None:
        yield from _drawn(last, f"{below}└─", f"{below}  ")
