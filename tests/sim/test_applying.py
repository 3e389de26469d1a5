"""Server-side apply, as ``kubectl apply --server-side -f`` of a CRD needs it."""

from random import Random

import yaml

from mcad.api.crd import crds
from mcad.kube.port import Request
from mcad.sim.clock import VirtualClock
from mcad.sim.patching import apply
from mcad.sim.registry import Registry
from mcad.sim.serving.patches import APPLY
from mcad.sim.serving.server import SimApi
from tests.sim.worlds import virtually


def test_maps_are_merged_and_all_else_is_replaced() -> None:
    live = {"a": {"b": 1, "c": 2}, "l": [1, 2], "kept": "x"}
    assert apply(live, {"a": {"c": 3, "d": 4}, "l": [9]}) == {
        "a": {"b": 1, "c": 3, "d": 4},
        "l": [9],
        "kept": "x",
    }
    assert live == {"a": {"b": 1, "c": 2}, "l": [1, 2], "kept": "x"}


@virtually
async def test_our_crd_is_applied_once_and_once_more() -> None:
    api, crd = SimApi(Registry(VirtualClock(), Random(1))), crds()[0]
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
    answers = [
        api.answer(Request("PATCH", path, {"fieldManager": "kubectl"}, body, APPLY))
        for body in (crd, yaml.safe_dump(crd).encode())
    ]
    assert [answer.status for answer in answers] == [201, 200]
    first, again = (answer.json() for answer in answers)
    assert first == again  # nothing was written
    served = api.answer(Request("GET", "/apis/workload.codeflare.dev/v1beta2/appwrappers"))
    assert served.status == 200


@virtually
async def test_an_object_of_another_kind_is_refused() -> None:
    api = SimApi(Registry(VirtualClock(), Random(1)))
    body = {"apiVersion": "v1", "kind": "Secret"}
    path = "/api/v1/namespaces/default/configmaps/m"
    answer = api.answer(Request("PATCH", path, {}, body, APPLY))
    wrong = "the kind in the data (Secret) is not ConfigMap"
    assert (answer.status, answer.json()["message"]) == (400, wrong)
