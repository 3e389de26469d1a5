"""The JSON types that every module of the transport shares; no behaviour."""

from typing import Any

Json = dict[str, Any]
"""One decoded JSON object. Values are whatever the server sent: check before use."""
