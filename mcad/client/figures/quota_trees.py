"""The quota trees that figures have, or why there are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcad.client.errors import McadError
from mcad.client.figures.figures import Figures

Json = dict[str, Any]

OFF_AT_SERVER = "quota is off: this dispatcher enforces no quota; set its quotaEnabled to true"
OFF = (
    "no dispatcher has written the status of a QuotaSubtree that you may see: quota is off, or its "
    "trees are in other namespaces"
)
NO_TREE = (
    "there is no quota tree, so nothing is limited; create QuotaSubtrees, see `mcad quota check -f`"
)


async def read_trees(figures: Figures) -> list[Json]:
    """All quota trees; raises ``McadError`` if quota is off, or if there are none."""
    view = await figures.quota()
    if not view["enabled"]:
        raise McadError(OFF if figures.is_stored else OFF_AT_SERVER)
    if not view["trees"]:
        raise McadError(NO_TREE)
    trees: list[Json] = view["trees"]
    return trees


def warnings_of(trees: Iterable[Json]) -> Iterator[str]:
    """A sentence for each fault of the trees."""
    for tree in trees:
        for one in tree["faults"]:
            yield f'{one["quotaSubtree"]}: node "{one["node"]}" does not count: {one["message"]}'
        for text in tree["warnings"]:
            yield f"tree {tree['tree']}: {text}"
