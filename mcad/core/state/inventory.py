"""An attempt is judged by its inventory, not by the present spec (protocol P8)."""

from __future__ import annotations

from mcad.core.state.model import DispatchPhase, DispatchRecord, Item, Workload
from mcad.core.state.records import replace


def aligned(work: Workload, record: DispatchRecord | None) -> Workload:
    """The AppWrapper with the items of the attempt, one by one, as far as its spec still has them.

    v1beta1 lets items be dropped, added and moved while it runs. An inventory item that is no
    longer in the spec has neither pod sets nor a word that completes it.
    """
    if record is None or record.phase is DispatchPhase.RELEASED:
        return work
    present = [item.ref.key for item in work.items]
    wanted = [ref.key for ref in record.inventory]
    if present == wanted:
        return work
    numbers = {name: number for number, name in enumerate(present)}
    places = [numbers.get(name) for name in wanted]
    items = tuple(
        Item(ref) if number is None else work.items[number]
        for ref, number in zip(record.inventory, places, strict=True)
    )
    sets = tuple(
        replace(one, item=place)
        for place, number in enumerate(places)
        for one in work.sets
        if one.item == number
    )
    return replace(work, items=items, sets=sets)
