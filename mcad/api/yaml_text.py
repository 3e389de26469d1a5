"""Reads YAML with a bound on the size of its aliases when they are written out.

A few hundred bytes of aliases to aliases can mean gigabytes. The parser shares the values, so only
code that writes them out later would notice.
"""

from typing import Any

import yaml

ALIASED_MAX = 3 * 1024 * 1024
"""Characters of all aliases of a document, written out: the API server's bound for a request."""


class BoundedLoader(yaml.SafeLoader):
    """PyYAML's safe loader, with a MarkedYAMLError for a document with too large aliases."""

    def compose_document(self) -> yaml.Node | None:
        """The nodes of the next document; refuses it before any value is constructed."""
        root: yaml.Node | None = super().compose_document()
        if root is not None:
            sizes: dict[int, int] = {}
            if _expanded(root, sizes) - _own(root, set()) > ALIASED_MAX:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"its aliases expand to more than {ALIASED_MAX >> 20} MiB; write the values "
                    "out instead",
                    root.start_mark,
                )
        return root


def read_yaml(text: str) -> Any:
    """The value of a text with one document; raises YAMLError."""
    return yaml.load(text, BoundedLoader)  # noqa: S506 - a safe loader


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _weight(node: yaml.Node) -> int:
    return 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """The size with all aliases written out; ``sizes`` caches those of known nodes."""
    if id(node) not in sizes:
        sizes[id(node)] = 0  # an alias to a node that contains it; the constructor refuses that
        total = _weight(node) + sum(_expanded(each, sizes) for each in _children(node))
        sizes[id(node)] = total
    return sizes[id(node)]


def _own(node: yaml.Node, seen: set[int]) -> int:
    """The size as written, each node once."""
    if id(node) in seen:
        return 0
    seen.add(id(node))
    return _weight(node) + sum(_own(each, seen) for each in _children(node))
