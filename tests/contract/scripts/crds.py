"""CustomResourceDefinitions, and objects of a kind that a user makes up."""

from __future__ import annotations

from typing import Any

from tests.contract.script import TABLE, Script, script

Json = dict[str, Any]


def is_established(status: int, body: Any) -> bool:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return status == 200 and any(
        one["type"] == "Established" and one["status"] == "True" for one in conditions
    )


def is_gone(status: int, body: Any) -> bool:
    return status == 404


def is_served(status: int, body: Any) -> bool:
    return status == 200


SPEC: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
                "parts": {
                    "type": "array",
                    "maxItems": 3,
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "properties": {
                            "id": {"type": "string"},
                            "weight": {"type": "number", "default": 1.5},
                        },
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["id"],
                },
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.name) || self.size > 1", "message": "who is named is not small"}
            ],
        },
        "status": {
            "type": "object",
            "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}},
        },
    },
}


def crd(group: str, versions: list[Json] | None = None, **changes: Any) -> Json:
    one = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SPEC},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Wide", "type": "string", "jsonPath": ".spec.color", "priority": 1},
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [one] if versions is None else versions,
        }
        | changes,
    }


def widget(group: str, name: str, version: str = "v1", /, **spec: Any) -> Json:
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


def establish(s: Script, group: str, body: Json) -> tuple[str, str]:
    """The paths of the definition and of its objects."""
    definition = f"customresourcedefinitions/widgets.{group}"
    objects = f"/apis/{group}/v1/namespaces/{s.namespace}/widgets"
    s.post("defined", "customresourcedefinitions", body)
    s.get("established", definition, until=is_established)
    s.get("served", objects, until=is_served)
    return definition, objects


@script
def crd_life(s: Script) -> None:
    group = "life.example.com"
    definition, objects = establish(s, group, crd(group))
    s.post("defined again", "customresourcedefinitions", crd(group))
    s.post("made", objects, widget(group, "a", size=3))
    s.get("read", f"{objects}/a")
    s.get("as a table", objects, accept=TABLE)
    s.get("scale", f"{objects}/a/scale")
    s.patch("scaled", f"{objects}/a/scale", {"spec": {"replicas": 5}})
    s.patch("scaled too far", f"{objects}/a/scale", {"spec": {"replicas": 50}})
    s.patch("status", f"{objects}/a/status", {"status": {"phase": "Fine", "replicas": 2}})
    s.get("scale again", f"{objects}/a/scale")
    s.delete("undefined", definition)
    s.get("definition gone", definition, until=is_gone)
    s.get("objects gone", objects, until=is_gone)
    again, _ = establish(s, group, crd(group))
    s.get("and empty", objects)
    s.delete("undefined again", again)
    s.get("definition gone again", again, until=is_gone)


@script
def crd_objects(s: Script) -> None:
    """Whole answers; the faults themselves, keyword by keyword, are in tests/sim/golden."""
    group = "objects.example.com"
    definition, objects = establish(s, group, crd(group))

    def post(label: str, spec: Json, **params: Any) -> None:
        name = label.replace(" ", "-").replace(",", "").lower()
        s.post(label, objects, widget(group, name, **spec), **params)

    post("required missing", {})
    post("too small", {"size": 0})
    post("a text for a number", {"size": "3"})
    post("not in the list", {"size": 1, "color": "green"})
    post("bad pattern", {"size": 2, "name": "ABC"})
    post("rule broken", {"size": 1, "name": "abc"})
    post("too many", {"size": 1, "parts": [{"id": str(n)} for n in range(4)]})
    post("unknown field", {"size": 1, "extra": 1})
    post(
        "unknown field, strict",
        {"size": 1, "extra": 1, "parts": [{"id": "a", "x": 1}]},
        fieldValidation="Strict",
    )
    s.post("spec a text", objects, widget(group, "text") | {"spec": "x"})
    labelled = widget(group, "meta", size=1)
    labelled["metadata"]["labels"] = {"x": 1}
    s.post("label of a number", objects, labelled)
    s.post("bad name", objects, widget(group, "Bad_Name", size=1))
    s.post("dry", objects, widget(group, "dry", size=1), dryRun="All")
    changed(s, group, objects)
    s.delete("undefined", definition)
    s.get("definition gone", definition, until=is_gone)


def changed(s: Script, group: str, objects: str) -> None:
    """Updates of an object that was right when it was made."""
    made = s.post("to be changed", objects, widget(group, "c", size=2))
    s.put("size is gone", f"{objects}/c", made.merged({"spec": {"size": None}}))
    s.patch("color is gone", f"{objects}/c", {"spec": {"color": None}})
    s.patch("bad color", f"{objects}/c", {"spec": {"color": "x"}})
    s.patch("unknown by a patch", f"{objects}/c", {"spec": {"extra": 1}}, fieldValidation="Strict")
    s.patch("bad status", f"{objects}/c/status", {"status": {"phase": 1}})
    s.patch("unknown status", f"{objects}/c/status", {"status": {"extra": 1}})
    s.get("all", objects)


@script
def crd_versions(s: Script) -> None:
    group = "versions.example.com"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    one = {"name": "v1", "served": True, "storage": True, "schema": schema}
    two = {
        "name": "v1beta1",
        "served": True,
        "storage": False,
        "schema": schema,
        "deprecated": True,
    }
    off = {"name": "v2", "served": False, "storage": False, "schema": schema}
    definition, objects = establish(s, group, crd(group, [two, one, off]))
    beta = objects.replace("/v1/", "/v1beta1/")
    made = s.post("made", objects, widget(group, "a", a=1))
    s.get("in the other version", f"{beta}/a")
    s.post("made in the other version", beta, widget(group, "b", "v1beta1", b=1))
    s.get("and read in the first", f"{objects}/b")
    s.patch("changed in the other version", f"{beta}/a", {"spec": {"c": 1}})
    s.get("list in the other version", beta)
    s.post("version of the body is another", objects, widget(group, "c", "v1beta1"))
    s.get("not served", objects.replace("/v1/", "/v2/"))
    s.watch("in the other version", beta, resourceVersion=made.version)
    s.delete("deleted in the other version", f"{beta}/a")
    s.get("gone", f"{objects}/a")
    s.patch("without a subresource", f"{objects}/b/status", {"status": {}})
    s.get("without a scale", f"{objects}/b/scale")
    s.patch("status as part of it", f"{objects}/b", {"status": {"x": 1}})
    s.delete("undefined", definition)
    s.get("definition gone", definition, until=is_gone)


@script
def crd_refused(s: Script) -> None:
    def post(label: str, **changes: Any) -> None:
        s.post(label, "customresourcedefinitions", crd("refused.example.com", **changes))

    path = "customresourcedefinitions"
    s.post(
        "name that does not fit",
        path,
        crd("refused.example.com") | {"metadata": {"name": "things.example.com"}},
    )
    post("no scope", scope=None)
    post("another scope", scope="Everywhere")
    post("no versions", versions=[])
    post("no kind", names={"plural": "widgets"})
    bare = {"name": "v1", "served": True, "storage": True}
    post("no schema", versions=[bare])
    post(
        "no storage",
        versions=[bare | {"storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    )
    post(
        "two storages",
        versions=[
            bare | {"name": name, "schema": {"openAPIV3Schema": {"type": "object"}}}
            for name in ("v1", "v2")
        ],
    )
    post(
        "schema without a type",
        versions=[bare | {"schema": {"openAPIV3Schema": {"properties": {"spec": {}}}}}],
    )
    s.delete("of nothing", f"{path}/nothing.example.com")


@script
def crd_changes(s: Script) -> None:
    group = "changes.example.com"
    definition, objects = establish(s, group, crd(group))
    s.post("made before", objects, widget(group, "a", size=3, color="blue"))
    changed = crd(group)
    version = changed["spec"]["versions"][0]
    fields = SPEC["properties"]["spec"]["properties"]
    spec = SPEC["properties"]["spec"] | {
        "properties": {
            "name": fields["name"],
            "size": fields["size"] | {"maximum": 2},
            "color": fields["color"] | {"enum": ["red"]},
            "extra": {"type": "string", "default": "more"},
        }
    }
    schema = SPEC | {"properties": SPEC["properties"] | {"spec": spec}}
    version["schema"] = {"openAPIV3Schema": schema}
    version["additionalPrinterColumns"] = [
        {"name": "Extra", "type": "string", "jsonPath": ".spec.extra"}
    ]
    s.patch("changed", definition, {"spec": changed["spec"]})
    s.get(
        "old object with the new default",
        f"{objects}/a",
        until=lambda status, body: "extra" in body.get("spec", {}),
    )
    s.get(
        "as a table",
        objects,
        accept=TABLE,
        until=lambda status, body: len(body.get("columnDefinitions", ())) == 2,
    )
    s.post("too large now", objects, widget(group, "b", size=3))
    s.post("small enough", objects, widget(group, "c", size=2))
    s.patch("what was wrong before may stay", f"{objects}/a", {"metadata": {"labels": {"x": "y"}}})
    s.patch("what is written anew may not", f"{objects}/a", {"spec": {"size": 4}})
    s.patch("unless it is right", f"{objects}/a", {"spec": {"size": 1}})
    s.put("without a version", definition, changed)
    s.patch("another group", definition, {"spec": {"group": "other.example.com"}})
    s.patch("another scope", definition, {"spec": {"scope": "Cluster"}})
    s.delete("undefined", definition)
    s.get("definition gone", definition, until=is_gone)


@script
def crd_end(s: Script) -> None:
    """A definition goes with its objects, and waits for the one that is kept."""
    group = "end.example.com"
    definition, objects = establish(s, group, crd(group))
    kept = widget(group, "kept", size=1)
    kept["metadata"]["finalizers"] = ["example.com/x"]
    s.post("kept", objects, kept)
    s.post("other", objects, widget(group, "other", size=1))
    s.delete("undefined", definition)
    s.get("the other one is gone", f"{objects}/other", until=is_gone)
    s.get(
        "the kept one is going",
        f"{objects}/kept",
        until=lambda status, body: "deletionTimestamp" in body.get("metadata", {}),
    )
    s.patch("released", f"{objects}/kept", {"metadata": {"finalizers": None}})
    s.get("definition gone", definition, until=is_gone)
    s.get("objects gone", objects, until=is_gone)
