"""YAML as people write it, with a bound on what its aliases may stand for.

A few hundred bytes of aliases to aliases stand for gigabytes, which the parser does not notice:
it shares the values, and only what reads them later writes them out one by one.
"""

from typing import Any

import yaml

ALIASED_MAX = 3 * 1024 * 1024
"""Characters that all aliases of a document may stand for: the API server's bound for a request."""


class BoundedLoader(yaml.SafeLoader):
    """PyYAML's safe loader; a document with aliases that stand for too much is a
    MarkedYAMLError."""

    def compose_document(self) -> yaml.Node | None:
        """The nodes of the next document, refused before any value is made of them."""
        root: yaml.Node | None = super().compose_document()
        if root is not None:
            sizes: dict[int, int] = {}
            if _expanded(root, sizes) - _own(root, set()) > ALIASED_MAX:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"its aliases stand for more than {ALIASED_MAX >> 20} MiB; write out what is "
                    "meant",
                    root.start_mark,
                )
        return root


def read_yaml(text: str) -> Any:
    """The value of the only document; raises YAMLError."""
    return yaml.load(text, BoundedLoader)  # noqa: S506 - a safe loader


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _weight(node: yaml.Node) -> int:
    return 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """The size with every alias written out; ``sizes`` has those of nodes that were met before."""
    if id(node) not in sizes:
        sizes[id(node)] = 0  # an alias to what it stands in; making the value fails on that
        total = _weight(node) + sum(_expanded(each, sizes) for each in _children(node))
        sizes[id(node)] = total
    return sizes[id(node)]


def _own(node: yaml.Node, seen: set[int]) -> int:
    """The size as it is written, each node once."""
    if id(node) in seen:
        return 0
    seen.add(id(node))
    return _weight(node) + sum(_own(each, seen) for each in _children(node))
