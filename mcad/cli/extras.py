"""Libraries that only an extra of the package installs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcad.client.errors import McadError

_EXTRAS = {"cel_expr_python": "demo", "jinja2": "ui"}
"""By the module that is imported."""


class MissingExtraError(McadError):
    """A command needs an extra of the package."""


@contextmanager
def extras_named(command: str) -> Iterator[None]:
    """Raise ``MissingExtraError`` if an import of the block needs an extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise MissingExtraError(
            f"`mcad {command}` needs libraries that are not installed: run"
            f" `pip install '.[{extra}]'` in the source directory of mcad"
        ) from error
