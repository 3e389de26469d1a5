"""Reads manifests from files: YAML or JSON, several documents each, with the place of every fault.

The result can be sent as JSON: keys are texts, times stay texts, and a duplicate key is an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from mcad.api.yaml_text import BoundedLoader
from mcad.client.errors import McadError

Json = dict[str, Any]

STDIN = "-"


class Document(Struct, frozen=True):
    """One object, and its place in a file for messages."""

    origin: str
    content: Json


_NOT_IN_JSON = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"}


class _Loader(BoundedLoader):
    """YAML with the types of JSON: a time or a lone ``=`` is a text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - a class attribute of PyYAML's
        first: [(tag, pattern) for tag, pattern in rules if tag not in _NOT_IN_JSON]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001 - PyYAML's signature
        """A map; a duplicate key is an error."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key != "<<":
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is given twice", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_documents(path: str) -> list[Document]:
    """All objects of a file (``-``: standard input), also those of lists."""
    origin = "standard input" if path == STDIN else path
    text = _read(path, origin)
    documents = [
        Document(place, content)
        for number, value in enumerate(_parse(text, origin), 1)
        for place, content in _objects(value, f"{origin}, document {number}")
    ]
    if not documents:
        raise McadError(f"{origin}: contains no object; write the AppWrapper into it")
    if len(documents) == 1:
        return [Document(origin, documents[0].content)]
    return documents


def _read(path: str, origin: str) -> str:
    try:
        return sys.stdin.read() if path == STDIN else Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise McadError(f"{origin}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise McadError(f"{origin}: is a directory; name its files") from None
    except UnicodeDecodeError:
        raise McadError(f"{origin}: is not text; write YAML or JSON in UTF-8") from None
    except OSError as error:
        raise McadError(f"{origin}: cannot be read: {error.strerror}") from None


def _parse(text: str, origin: str) -> list[Any]:
    """The values of all non-empty documents, with the types of JSON."""
    try:
        values = [value for value in _values(text, origin) if value is not None]
        return [json.loads(json.dumps(value, allow_nan=False)) for value in values]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}" if mark else ""
        raise McadError(f"{origin}{place}: cannot be read: {error.problem or error}") from None
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        what = str(error) or type(error).__name__
        raise McadError(f"{origin}: is not YAML that can be sent as JSON: {what}") from None


def _values(text: str, origin: str) -> list[Any]:
    if text.lstrip().startswith("{"):  # JSON may contain tabs, where YAML may not
        with suppress(json.JSONDecodeError):
            return [json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, origin))]
    return list(yaml.load_all(text, _Loader))


def _unique(pairs: list[tuple[str, Any]], origin: str) -> Json:
    found: Json = {}
    for key, value in pairs:
        if key in found:
            raise McadError(f"{origin}: the key {key!r} is given twice in one map; keep one")
        found[key] = value
    return found


def _objects(value: Any, place: str) -> Iterator[tuple[str, Json]]:
    if not isinstance(value, dict):
        raise McadError(f"{place}: is not an object; it begins with apiVersion, kind and metadata")
    items = value.get("items")
    if str(value.get("kind", "")).endswith("List") and isinstance(items, list):
        for number, item in enumerate(items):
            yield from _objects(item, f"{place}, items[{number}]")
    else:
        yield place, value
