"""Which differences of an installed CRD matter, and how the first one is told."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from mcad.api.crd import crds
from mcad.api.crddiff import first_difference

Json = dict[str, Any]


def version(crd: Json, number: int = 1) -> Json:
    return crd["spec"]["versions"][number]


def spec(crd: Json) -> Json:
    return version(crd)["schema"]["openAPIV3Schema"]["properties"]["spec"]


def properties(crd: Json) -> Json:
    return spec(crd)["properties"]


def item(crd: Json) -> Json:
    return properties(crd)["resources"]["properties"]["GenericItems"]["items"]


def old(crd: Json) -> None:
    crd["spec"]["versions"] = [{**version(crd, 0), "storage": True}]


V = "version v1beta2"
DIFFERENT: list[tuple[str, Callable[[Json], object]]] = [
    (f"{V}: is missing", old),
    (f"{V}: is missing", lambda crd: crd["spec"]["versions"].pop(1)),
    (f"{V}: is not served", lambda crd: version(crd).update(served=False)),
    (
        "version v2: is served, but this mcad does not know it",
        lambda crd: crd["spec"]["versions"].append({"name": "v2", "served": True}),
    ),
    (
        "version v0: is stored, but this mcad does not know it",
        lambda crd: crd["spec"]["versions"].append({"name": "v0", "storage": True}),
    ),
    (f"{V}: has no status subresource", lambda crd: version(crd).pop("subresources")),
    (
        "conversion.strategy is 'Webhook', not 'None'",
        lambda crd: crd["spec"].update(conversion={"strategy": "Webhook"}),
    ),
    ("scope is 'Cluster', not 'Namespaced'", lambda crd: crd["spec"].update(scope="Cluster")),
    (f"{V}: spec.suspend: is missing", lambda crd: properties(crd).pop("suspend")),
    (
        f"{V}: spec.resources.GenericItems[].colour: is not known to this mcad",
        lambda crd: item(crd)["properties"].update(colour={"type": "string"}),
    ),
    (
        f"{V}: spec.priority: type is 'string', not 'integer'",
        lambda crd: properties(crd)["priority"].update(type="string"),
    ),
    (
        f"{V}: spec.components: maxItems is missing",
        lambda crd: properties(crd)["components"].pop("maxItems"),
    ),
    (
        f"{V}: spec.priority: maximum is 9",
        lambda crd: properties(crd)["priority"].update(maximum=9),
    ),
    (
        f"{V}: spec.resources.GenericItems[].generictemplate: "
        "x-kubernetes-preserve-unknown-fields is missing",
        lambda crd: item(crd)["properties"]["generictemplate"].pop(
            "x-kubernetes-preserve-unknown-fields"
        ),
    ),
    (
        f"{V}: spec: the rule 'has(self.resources) != has(self.components)' is missing",
        lambda crd: spec(crd)["x-kubernetes-validations"].pop(0),
    ),
    (
        f"{V}: spec: the rule 'true' is not known to this mcad",
        lambda crd: spec(crd)["x-kubernetes-validations"].append({"rule": "true"}),
    ),
    (f"{V}: spec: required is ['priority']", lambda crd: spec(crd).update(required=["priority"])),
    ("group is None, not 'workload.codeflare.dev'", lambda crd: crd.clear()),
]


@pytest.mark.parametrize(("told", "change"), DIFFERENT)
def test_the_first_difference_is_reported(told: str, change: Callable[[Json], object]) -> None:
    live = deepcopy(crds()[0])
    change(live)
    assert first_difference(live, crds()[0]) == told


SAME: dict[str, Callable[[Json], object]] = {
    "nothing": lambda crd: None,
    "labels": lambda crd: crd["metadata"].update(labels={"helm.sh/chart": "mcad-0.1.0"}),
    "status": lambda crd: crd.update(status={"storedVersions": ["v1beta1", "v1beta2"]}),
    "v1beta1 not served": lambda crd: version(crd, 0).update(served=False),
    "v1beta1 stored": lambda crd: (
        version(crd, 0).update(storage=True),
        version(crd).update(storage=False),
    ),
    "columns": lambda crd: version(crd).pop("additionalPrinterColumns"),
    "short names": lambda crd: crd["spec"]["names"].pop("shortNames"),
    "no conversion": lambda crd: crd["spec"].pop("conversion"),
    "words": lambda crd: properties(crd)["priority"].update(description="other", title="P"),
    "a message": lambda crd: spec(crd)["x-kubernetes-validations"][0].update(message="no"),
    "order": lambda crd: (
        crd["spec"]["versions"].reverse(),
        spec(crd)["x-kubernetes-validations"].reverse(),
        item(crd)["properties"]["custompodresources"]["items"]["required"].reverse(),
    ),
    "a version for the past": lambda crd: crd["spec"]["versions"].append(
        {"name": "v1alpha1", "served": False}
    ),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME.keys())
def test_what_does_not_matter(change: Callable[[Json], object]) -> None:
    live = deepcopy(crds()[0])
    change(live)
    assert first_difference(live, crds()[0]) == ""


def test_a_field_may_be_called_as_a_keyword_of_no_matter() -> None:
    live = deepcopy(crds()[0])
    properties(live)["description"] = {"type": "string"}
    assert first_difference(live, crds()[0]).endswith("spec.description: is not known to this mcad")


def test_mcads_own_crd_of_quota_trees_has_no_status_to_write() -> None:
    ours = crds()[1]
    assert first_difference(deepcopy(ours), ours) == ""
    live = deepcopy(ours)
    del version(live, 0)["subresources"]
    assert first_difference(live, ours) == "version v1alpha1: has no status subresource"
