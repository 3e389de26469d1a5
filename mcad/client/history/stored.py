"""AppWrappers that have ended and are still stored."""

from __future__ import annotations

from mcad.client.errors import explain_list
from mcad.client.figures.source import figures_in
from mcad.client.history.ended import Ended, read_ended
from mcad.kube.client import Client, Selection
from mcad.kube.errors import KubeError
from mcad.kube.kinds import APPWRAPPERS


async def stored_history(
    client: Client, namespace: str | None, selector: str = ""
) -> tuple[list[Ended], tuple[str, ...]]:
    """Those of a namespace (None: all) with these labels, and warnings about them.

    What they demanded is the dispatcher's to say: it is unknown if that cannot be asked.
    """
    selection = Selection(namespace, label_selector=selector)
    try:
        objects, _ = await client.list_all(APPWRAPPERS, selection)
    except KubeError as error:
        raise explain_list(APPWRAPPERS, error, namespace) from error
    figures = await figures_in(client, namespace)
    rows = [] if figures.is_stored else await figures.rows(waiting_only=False)
    demands = {row["uid"]: row["demand"] for row in rows}
    found = (read_ended(obj, demands.get(obj["metadata"]["uid"])) for obj in objects)
    return [one for one in found if one is not None], figures.notes
