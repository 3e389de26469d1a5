"""The discovery documents, aggregated (v2) and one by one, and the version.

kubectl asks for ``/api`` and ``/apis`` with an Accept header that prefers the aggregated form and
is content with the classic one; old clients walk group by group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mcad.kube.types import Json
from mcad.sim.kinds import Kind, KindTable

AGGREGATED = "APIGroupDiscoveryList"
AGGREGATED_TYPE = f"application/json;g=apidiscovery.k8s.io;v=v2;as={AGGREGATED}"
KUBERNETES = "1.36"
"""The version of the API that is imitated, and that the tests compare with."""

_VERSION: Json = {
    "major": "1",
    "minor": KUBERNETES.partition(".")[2],
    "gitVersion": f"v{KUBERNETES}.0+mcad.simulated",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "simulated/python",
}
_READ_WRITE = ("get", "patch", "update")
_SUBRESOURCE_VERBS = {"finalize": ("update",), "log": ("get",)}
_SUBRESOURCE_KINDS = {"scale": ("autoscaling", "v1", "Scale")}
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def answer(path: str, accept: str, kinds: KindTable) -> Json | None:
    """The document at ``path`` in the form that ``accept`` prefers; None if it is none of ours."""
    parts = path.strip("/").split("/")
    match parts:
        case ["version"]:
            return _VERSION
        case ["api"]:
            core = (kind for kind in kinds.all() if not kind.group)
            return _aggregated(core) if _wants_aggregated(accept) else _core_versions()
        case ["apis"]:
            named = [kind for kind in kinds.all() if kind.group]
            return _aggregated(named) if _wants_aggregated(accept) else _group_list(named)
        case ["api", version]:
            return _resource_list(kinds, "", version)
        case ["apis", group]:
            return _group(kinds, group)
        case ["apis", group, version]:
            return _resource_list(kinds, group, version)
    return None


def _wants_aggregated(accept: str) -> bool:
    """The first type of the header that we speak decides."""
    for one in accept.split(","):
        kind, *params = [part.strip() for part in one.split(";")]
        if {"g=apidiscovery.k8s.io", "v=v2", f"as={AGGREGATED}"} <= set(params):
            return True
        if kind in ("application/json", "*/*", "application/*") and "as=" not in one:
            return False
    return False


def _grouped(kinds: Iterable[Kind], key: Callable[[Kind], str]) -> dict[str, list[Kind]]:
    """In the order in which the keys come first."""
    found: dict[str, list[Kind]] = {}
    for kind in kinds:
        found.setdefault(key(kind), []).append(kind)
    return found


def _versions(kinds: Iterable[Kind]) -> dict[str, list[Kind]]:
    return _grouped(kinds, lambda kind: kind.version)


def _sorted(kinds: Iterable[Kind]) -> list[Kind]:
    return sorted(kinds, key=lambda kind: kind.plural)


def _subresources(kind: Kind) -> list[str]:
    """The log of a pod is served too, as a text that says that there is none."""
    more = {"log"} if kind.storage == ("", "pods") else set()
    return sorted({*kind.subresources, *more})


def _verbs(kind: Kind) -> list[str]:
    if kind.is_custom:
        return [verb for verb in _CUSTOM_VERBS if verb in kind.verbs]
    return sorted(kind.verbs)


# -- aggregated --------------------------------------------------------------------------------


def _aggregated(kinds: Iterable[Kind]) -> Json:
    return {
        "kind": AGGREGATED,
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_resource_v2(kind) for kind in _sorted(members)],
                        "freshness": "Current",
                    }
                    for version, members in _versions(of_group).items()
                ],
            }
            for group, of_group in _grouped(kinds, lambda kind: kind.group).items()
        ],
    }


def _resource_v2(kind: Kind) -> Json:
    own = (kind.group, kind.version, kind.kind) if kind.is_custom else ("", "", kind.kind)
    resource: Json = {
        "resource": kind.plural,
        "responseKind": _kind_v2(own),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    subresources = [
        {
            "subresource": name,
            "responseKind": _kind_v2(_SUBRESOURCE_KINDS.get(name, own)),
            "verbs": list(_SUBRESOURCE_VERBS.get(name, _READ_WRITE)),
        }
        for name in _subresources(kind)
    ]
    return resource | _names(kind) | ({"subresources": subresources} if subresources else {})


def _kind_v2(names: tuple[str, str, str]) -> Json:
    return dict(zip(("group", "version", "kind"), names, strict=True))


def _names(kind: Kind) -> Json:
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: value for key, value in names.items() if value}


# -- classic -----------------------------------------------------------------------------------


def _core_versions() -> Json:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _group_list(kinds: Iterable[Kind]) -> Json:
    groups = _grouped(kinds, lambda kind: kind.group).items()
    described = [_described(group, members) for group, members in groups]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": described}


def _group(kinds: KindTable, group: str) -> Json | None:
    members = [kind for kind in kinds.all() if kind.group == group]
    if not members:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _described(group, members)


def _described(group: str, members: Iterable[Kind]) -> Json:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in _versions(members)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(kinds: KindTable, group: str, version: str) -> Json | None:
    members = [kind for kind in kinds.all() if (kind.group, kind.version) == (group, version)]
    if not members:
        return None
    return {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),  # the oldest form had none, and still has none
        "groupVersion": members[0].api_version,
        "resources": [one for kind in _sorted(members) for one in _resources_v1(kind)],
    }


def _resources_v1(kind: Kind) -> Iterator[Json]:
    yield {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
        **_names(kind),
    }
    for name in _subresources(kind):
        group, version, shown = _SUBRESOURCE_KINDS.get(name, ("", "", kind.kind))
        foreign = {"group": group, "version": version} if group else {}
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **foreign,
            "kind": shown,
            "verbs": list(_SUBRESOURCE_VERBS.get(name, _READ_WRITE)),
        }
