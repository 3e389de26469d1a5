"""A check of the built site: no page loads anything from another server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

LOADS = re.compile(
    r"""<(?:script|img|iframe)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*\bhref=["']?(?:https?:)?//[^>]*>"""
    r"""|url\(["']?(?:https?:)?//[^)]*\)|@import\s+["'](?:https?:)?//[^"']*"""
)


def on_post_build(*, config: Any) -> None:
    """Fail for a page or style that loads from elsewhere."""
    site = Path(config["site_dir"])
    found = [
        f"{path.relative_to(site)}: {match[0][:100]}"
        for path in sorted((*site.rglob("*.html"), *site.rglob("*.css")))
        for match in LOADS.finditer(path.read_text())
    ]
    if found:
        raise PluginError("The site loads from other servers:\n" + "\n".join(found))
