"""Compares an installed CRD with the one of this version: the first difference that matters.

A difference matters if it changes what is stored, pruned, refused or defaulted. Descriptions,
messages of rules, printer columns, labels and additions of the API server do not matter. Nor does
the storage version, as all versions have the same schema: a cluster that migrates from MCAD stores
v1beta1 for a while. Only the version that the dispatcher uses has to be served (chart: dialects).
"""

from collections.abc import Iterator

from mcad.api.wire import Json, Map, as_list, as_map, as_text, dig

_WORDS = frozenset({"description", "title", "example", "externalDocs"})
_RULES = "x-kubernetes-validations"
_NESTED = {"items": "[]", "additionalProperties": ".*"}
_UNORDERED = frozenset({"required", "enum"})


def first_difference(live: Map, ours: Map) -> str:
    """The first difference of an installed CRD from ours, as text; "" if there is none."""
    return next(_differences(as_map(live.get("spec")), as_map(ours["spec"])), "")


def _differences(live: Map, ours: Map) -> Iterator[str]:
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        there, here = dig(live, *path), dig(ours, *path)
        if there != here:
            yield f"{'.'.join(path)} is {there!r}, not {here!r}"
    strategy = dig(live, "conversion", "strategy") or "None"
    if strategy != "None":
        yield f"conversion.strategy is {strategy!r}, not 'None'"
    versions = _by_name(live)
    wanted = _by_name(ours)
    for name, version in wanted.items():
        for difference in _version(as_map(versions.get(name)), version):
            yield f"version {name}: {difference}"
    for name, version in versions.items():
        if name not in wanted and (version.get("served") or version.get("storage")):
            verb = "served" if version.get("served") else "stored"
            yield f"version {name}: is {verb}, but this mcad does not know it"


def _by_name(spec: Map) -> dict[str, Map]:
    versions = (as_map(one) for one in as_list(spec.get("versions")))
    return {as_text(one.get("name")): one for one in versions}


def _version(live: Map, ours: Map) -> Iterator[str]:
    if not live:
        yield "is missing"
        return
    if ours.get("storage") and not live.get("served"):
        yield "is not served"
    if not isinstance(dig(live, "subresources", "status"), dict):
        yield "has no status subresource"
    schemas = (as_map(dig(one, "schema", "openAPIV3Schema")) for one in (live, ours))
    yield from _schema("", *schemas)


def _schema(path: str, live: Map, ours: Map) -> Iterator[str]:
    """Differences of two structural schemas, outermost fields first."""
    title = path.lstrip(".") or "schema"
    for keyword in sorted({*live, *ours} - _WORDS - {"properties", *_NESTED}):
        there, here = (_value(keyword, one.get(keyword)) for one in (live, ours))
        if there != here:
            yield f"{title}: {_difference(keyword, there, here)}"
    there, here = _nested(live), _nested(ours)
    for mark in sorted({*there, *here}):
        if mark in there and mark in here:
            yield from _schema(path + mark, there[mark], here[mark])
        else:
            words = "is missing" if mark in here else "is not known to this mcad"
            yield f"{(path + mark).lstrip('.')}: {words}"


def _nested(schema: Map) -> dict[str, Map]:
    """The nested schemas, by the next part of their path."""
    inside = {mark: schema.get(key) for key, mark in _NESTED.items()}
    inside |= {f".{name}": one for name, one in as_map(schema.get("properties")).items()}
    return {mark: as_map(one) for mark, one in inside.items() if one is not None}


def _value(keyword: str, value: Json) -> Json:
    """The value of a keyword, without the parts that do not matter."""
    if keyword == _RULES:
        return sorted(as_text(as_map(one).get("rule")) for one in as_list(value))
    if keyword in _UNORDERED and value is not None:
        return sorted(map(str, as_list(value)))
    return value


def _difference(keyword: str, there: Json, here: Json) -> str:
    if keyword == _RULES:
        lacking = [rule for rule in here if rule not in there]
        rule = (lacking or [rule for rule in there if rule not in here])[0]
        return f"the rule {rule!r} is {'missing' if lacking else 'not known to this mcad'}"
    if there is None:
        return f"{keyword} is missing"
    return f"{keyword} is {there!r}" + (f", not {here!r}" if here is not None else "")
