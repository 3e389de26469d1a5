"""Checks manifests of QuotaSubtrees before they are applied.

Which nodes get a place in their tree is decided by the core (quota/tree.py), as later in the
cluster. Added here is what the API server would refuse, and which field of which manifest to
correct.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from mcad.api.labels import QUOTA_GROUP, QUOTA_VERSION, TREE, value_fault
from mcad.api.located_fields import describe
from mcad.api.quotamodels import QuotaChildSpec, Quotas, QuotaSubtreeSpec
from mcad.api.quotas import read_quota
from mcad.api.validation import UNKNOWN, explain
from mcad.api.wire import Json, Map, as_list, as_map, as_text
from mcad.core.quota.report import overcommitted
from mcad.core.quota.tree import Fault, Flaw, Tree, grow
from mcad.core.state.quota_records import DEFAULT_LEAF, QuotaSubtree
from mcad.core.state.spelling import ALIKE_MAX, did_you_mean

API_VERSION = f"{QUOTA_GROUP}/{QUOTA_VERSION}"
OLD_API_VERSION = "ibm.com/v1"

_KNOWN = ("apiVersion", "kind", "metadata", "spec", "status")
_FIELDS = tuple(
    field.alias or name
    for model in (QuotaSubtreeSpec, QuotaChildSpec, Quotas)
    for name, field in model.model_fields.items()
)


class Finding(NamedTuple):
    """A fault at one field of a manifest; a ``warning`` does not prevent its use.

    ``origin`` is the file of the manifest, ``title`` its object as ``namespace/name``; ``field`` is
    "" for the object as a whole.
    """

    origin: str
    title: str
    field: str
    message: str
    warning: bool = False


class Checked(NamedTuple):
    """All findings in the order of the manifests, and the resulting trees."""

    findings: list[Finding]
    trees: list[Tree]


class _Manifest(NamedTuple):
    origin: str
    content: Map
    subtree: QuotaSubtree

    @property
    def title(self) -> str:
        metadata = as_map(self.content.get("metadata"))
        name = as_text(metadata.get("name")) or "<no name>"
        return f"{as_text(metadata.get('namespace')) or 'default'}/{name}"

    def finding(self, field: str, message: str, *, warning: bool = False) -> Finding:
        return Finding(self.origin, self.title, field, message, warning)


def check(manifests: Iterable[tuple[str, Map]]) -> Checked:
    """Check (origin, object) pairs as if there were no others in the cluster."""
    read = [_read(number, *each) for number, each in enumerate(manifests)]
    findings = [found for one in read for found in (*_form(one), *_readable(one))]
    findings += _repeated(read)
    trees: list[Tree] = []
    for name in sorted({one.subtree.tree for one in read} - {""}):
        mine = {one.subtree.uid: one for one in read if one.subtree.tree == name}
        tree, faults = grow(name, (one.subtree for one in mine.values()))
        findings += _placed(mine, faults)
        if tree is not None:
            trees.append(tree)
            findings += _doubtful(list(mine.values()), tree)
    places = {one.origin: number for number, one in reversed([*enumerate(read)])}
    return Checked(sorted(findings, key=lambda one: places[one.origin]), trees)


def _read(number: int, origin: str, content: Map) -> _Manifest:
    """Read a manifest as the dispatcher will, which sees a uid and a namespace."""
    metadata = {"namespace": "default", **as_map(content.get("metadata")), "uid": str(number)}
    return _Manifest(origin, content, read_quota({**content, "metadata": metadata}))


# -- one manifest --------------------------------------------------------------------------------


def _form(one: _Manifest) -> Iterator[Finding]:
    """Faults that the API server would refuse, or that make the dispatcher ignore the object."""
    content, metadata = one.content, as_map(one.content.get("metadata"))
    version = as_text(content.get("apiVersion"))
    if version != API_VERSION:
        old = ", which is no longer served" * (version == OLD_API_VERSION)
        yield one.finding(
            "apiVersion",
            f"is {version or 'missing'}{old}: use {API_VERSION}; keep all other fields.",
        )
    if not as_text(metadata.get("name")):
        yield one.finding("metadata.name", "is required.")
    yield from (one.finding(*each) for each in _tree_label(as_map(metadata.get("labels"))))
    for key in content:
        if key not in _KNOWN:
            yield one.finding(key, _unknown(key, _KNOWN))
    spec: Json = content.get("spec")
    if not isinstance(spec, dict):
        yield one.finding("spec", "is required, with parent and children.")
        return
    try:
        QuotaSubtreeSpec.model_validate(spec, extra="forbid")
    except ValidationError as error:
        for place, message in explain(error):
            unknown = message == UNKNOWN
            yield one.finding(
                _path(place), _unknown(str(place[-1]), _FIELDS) if unknown else message
            )


def _tree_label(labels: Map) -> Iterator[tuple[str, str]]:
    tree: Json = labels.get(TREE)
    field = f"metadata.labels.{TREE}"
    if tree is None or tree == "":
        yield field, "is required: it names the tree; without it the object is ignored."
    elif not isinstance(tree, str):
        yield field, f"must be a string, not {describe(tree)}; quote it."
    elif fault := value_fault(tree):
        yield field, f"{fault}."


def _unknown(key: str, known: Sequence[str]) -> str:
    return f"{UNKNOWN} {did_you_mean(key, known) or 'Remove it.'}"


def _path(place: tuple[int | str, ...]) -> str:
    return "spec" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place)


def _readable(one: _Manifest) -> Iterator[Finding]:
    """Faults of single nodes, and settings of theirs that have no effect."""
    children = as_list(as_map(one.content.get("spec")).get("children"))
    if not children:
        yield one.finding("spec.children", "is empty, so this adds no nodes.", warning=True)
    for number, child in enumerate(one.subtree.children):
        place = f"spec.children[{number}]"
        if child.flaw:
            where = ".quotas.requests" if child.name else ""
            yield one.finding(f"{place}{where}", child.flaw)
        if child.name and (fault := value_fault(child.name)):
            yield one.finding(
                f"{place}.name", f"{fault}, so no AppWrapper can name it.", warning=True
            )
        if as_map(as_map(children[number]).get("quotas")).get("disabled") is True:
            yield one.finding(
                f"{place}.quotas.disabled",
                "has no effect; to remove the share, remove the node.",
                warning=True,
            )


def _repeated(read: list[_Manifest]) -> Iterator[Finding]:
    """Objects with more than one manifest: only the one that is applied last would count."""
    seen: dict[str, _Manifest] = {}
    for one in read:
        earlier = seen.setdefault(one.title, one)
        if earlier is not one:
            text = f"the same object is already in {earlier.origin}; rename one of them."
            yield one.finding("metadata.name", text)


# -- a whole tree --------------------------------------------------------------------------------


def _placed(mine: dict[str, _Manifest], faults: list[Fault]) -> Iterator[Finding]:
    """Faults that keep nodes out of their tree. A fault of a whole manifest is reported once."""
    reported: set[tuple[str, Flaw]] = set()
    for fault in faults:
        one, subtree = mine[fault.uid], mine[fault.uid].subtree
        if fault.flaw is Flaw.UNREADABLE:
            continue  # reported with the manifest
        if fault.flaw is Flaw.NAME_USED_TWICE:
            numbers = [n for n, child in enumerate(subtree.children) if child.name == fault.child]
            yield one.finding(f"spec.children[{numbers[-1]}].name", fault.message)
        elif (fault.uid, fault.flaw) not in reported:
            reported.add((fault.uid, fault.flaw))
            hint = _similar_parent(mine, subtree, fault.flaw)
            yield one.finding("spec.parent", fault.message + hint)


def _similar_parent(mine: dict[str, _Manifest], subtree: QuotaSubtree, flaw: Flaw) -> str:
    """A hint at an existing node with a similar name, for a parent that is missing."""
    if flaw is not Flaw.PARENT_MISSING:
        return ""
    own = {child.name for child in subtree.children}
    nodes = [child.name for one in mine.values() for child in one.subtree.children]
    if subtree.parent in nodes:
        return ""
    return f" {did_you_mean(subtree.parent, sorted({*nodes} - own), ALIKE_MAX)}".rstrip()


def _doubtful(mine: list[_Manifest], tree: Tree) -> Iterator[Finding]:
    """Warnings of trees that work, but perhaps not as intended."""
    for parent, message in overcommitted(tree).items():
        at = next(one for one in mine if one.subtree.parent == parent)
        yield at.finding("spec.children", message, warning=True)
    if DEFAULT_LEAF not in tree.leaves():
        at = next(one for one in mine if _defines(one, tree.root.name))
        text = f'tree "{tree.name}" has no leaf "{DEFAULT_LEAF}", so it refuses every AppWrapper '
        yield at.finding("", text + f"without the label {tree.name}.", warning=True)


def _defines(one: _Manifest, node: str) -> bool:
    return any(child.name == node for child in one.subtree.children)
