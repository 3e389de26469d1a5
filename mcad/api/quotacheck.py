"""What is wrong with manifests of QuotaSubtrees, before they are applied.

Which nodes get a place in their tree is told by the code that will place them (core
quota/trees.py); here is only what the API server would refuse, and where in which manifest to mend
it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from mcad.api.labels import QUOTA_GROUP, QUOTA_VERSION, TREE, value_fault
from mcad.api.located_fields import describe
from mcad.api.quotamodels import QuotaChildSpec, Quotas, QuotaSubtreeSpec
from mcad.api.quotas import read_quota
from mcad.api.validation import explain
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
    """What is wrong at one field of a manifest; a ``warning`` keeps nothing from working.

    ``origin`` is the manifest's file, ``title`` its object as ``namespace/name``; ``field`` is ""
    if it is about the whole.
    """

    origin: str
    title: str
    field: str
    message: str
    warning: bool = False


class Checked(NamedTuple):
    """All that was found, in the order of the manifests, and the trees that there would be."""

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
    """Judge (origin, object) pairs as if they alone were in the cluster."""
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
    """As the dispatcher will see it: it has a uid there, and a namespace."""
    metadata = {"namespace": "default", **as_map(content.get("metadata")), "uid": str(number)}
    return _Manifest(origin, content, read_quota({**content, "metadata": metadata}))


# -- one manifest --------------------------------------------------------------------------------


def _form(one: _Manifest) -> Iterator[Finding]:
    """What the API server would refuse, or no dispatcher would look at."""
    content, metadata = one.content, as_map(one.content.get("metadata"))
    version = as_text(content.get("apiVersion"))
    if version != API_VERSION:
        old = ", which is not served any more" * (version == OLD_API_VERSION)
        yield one.finding(
            "apiVersion", f"is {version or 'missing'}{old}: write {API_VERSION}; all else may stay."
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
            unknown = message == "is not known here."
            told = _unknown(str(place[-1]), _FIELDS) if unknown else message
            yield one.finding(_path(place), told)


def _tree_label(labels: Map) -> Iterator[tuple[str, str]]:
    tree: Json = labels.get(TREE)
    field = f"metadata.labels.{TREE}"
    if tree is None or tree == "":
        yield field, "is required: it says which tree this is of; without it nobody looks at it."
    elif not isinstance(tree, str):
        yield field, f"must be a text, not {describe(tree)}: put it in quotes."
    elif fault := value_fault(tree):
        yield field, f"{fault}."


def _unknown(key: str, known: Sequence[str]) -> str:
    return f"is not known here. {did_you_mean(key, known) or 'Take it out.'}"


def _path(place: tuple[int | str, ...]) -> str:
    return "spec" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place)


def _readable(one: _Manifest) -> Iterator[Finding]:
    """What of the nodes cannot be read, or would surprise."""
    children = as_list(as_map(one.content.get("spec")).get("children"))
    if not children:
        yield one.finding("spec.children", "is empty, so this adds no node.", warning=True)
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
                "has no effect; to take the share away take the node out.",
                warning=True,
            )


def _repeated(read: list[_Manifest]) -> Iterator[Finding]:
    """Of two manifests of one object only the one that is applied last would count."""
    seen: dict[str, _Manifest] = {}
    for one in read:
        earlier = seen.setdefault(one.title, one)
        if earlier is not one:
            text = f"the same object is in {earlier.origin} already; give one of them another name."
            yield one.finding("metadata.name", text)


# -- a whole tree --------------------------------------------------------------------------------


def _placed(mine: dict[str, _Manifest], faults: list[Fault]) -> Iterator[Finding]:
    """What keeps nodes out of their tree. A fault of a whole manifest is told once."""
    told: set[tuple[str, Flaw]] = set()
    for fault in faults:
        one, subtree = mine[fault.uid], mine[fault.uid].subtree
        if fault.flaw is Flaw.UNREADABLE:
            continue  # told with the manifest
        if fault.flaw is Flaw.NAME_USED_TWICE:
            numbers = [n for n, child in enumerate(subtree.children) if child.name == fault.child]
            yield one.finding(f"spec.children[{numbers[-1]}].name", fault.message)
        elif (fault.uid, fault.flaw) not in told:
            told.add((fault.uid, fault.flaw))
            yield one.finding("spec.parent", fault.message + _alike(mine, subtree, fault.flaw))


def _alike(mine: dict[str, _Manifest], subtree: QuotaSubtree, flaw: Flaw) -> str:
    """Which parent may have been meant."""
    if flaw is not Flaw.PARENT_MISSING:
        return ""
    own = {child.name for child in subtree.children}
    nodes = [child.name for one in mine.values() for child in one.subtree.children]
    if subtree.parent in nodes:
        return ""
    return f" {did_you_mean(subtree.parent, sorted({*nodes} - own), ALIKE_MAX)}".rstrip()


def _doubtful(mine: list[_Manifest], tree: Tree) -> Iterator[Finding]:
    """What works and may not be meant."""
    for parent, message in overcommitted(tree).items():
        at = next(one for one in mine if one.subtree.parent == parent)
        yield at.finding("spec.children", message, warning=True)
    if DEFAULT_LEAF not in tree.leaves():
        at = next(one for one in mine if _defines(one, tree.root.name))
        text = f'tree "{tree.name}" has no leaf "{DEFAULT_LEAF}", so it refuses every AppWrapper '
        yield at.finding("", text + f"without the label {tree.name}.", warning=True)


def _defines(one: _Manifest, node: str) -> bool:
    return any(child.name == node for child in one.subtree.children)
