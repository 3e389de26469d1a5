"""AppWrappers that the API server may accept, with extremes in each field that is read.

The same seed and number draw the same manifest. The extremes are those of tests/api/strategies.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from mcad.api.labels import GROUP, QUEUE_NAME
from mcad.api.tolerance import PREFIX
from tests.api.strategies import extremes_of, follow, places
from tests.manifests import components, config_map, deployment, generic, job, pod, subtree

Json = dict[str, Any]

TREE = "teams"
LEAVES = ("red", "red", "red", "blue", "blue", "blue", "none-such")
LEVELS = ("topology.kubernetes.io/block", "topology.kubernetes.io/rack")
_UNCHANGED = 0.15  # of the manifests: valid ones among which the extreme ones have to live


def manifest(seed: int, number: int) -> Json:
    """The AppWrapper with this number."""
    rng = Random(f"{seed}/{number}")
    name = f"x{number}"
    items = [_item(rng, f"{name}-{place}") for place in range(rng.choice((1, 1, 1, 2, 3)))]
    drawn = (_v1beta1 if rng.random() < 0.6 else _v1beta2)(rng, name, items)
    drawn = copy.deepcopy(drawn)  # no part is in two places
    _annotate(rng, drawn["metadata"])
    if rng.random() < _UNCHANGED:
        return drawn
    found = {place: extremes_of(drawn, place) for place in places(drawn)}
    numbers = [place for place, extremes in found.items() if extremes]
    for place in rng.sample(numbers, min(len(numbers), rng.choice((1, 1, 2, 3, 6, 12)))):
        *way, key = place
        follow(drawn, way)[key] = rng.choice(found[place])
    return drawn


def _v1beta1(rng: Random, name: str, templates: list[Json]) -> Json:
    spec: Json = {}
    if rng.random() < 0.5:
        spec |= {"priority": rng.choice((-5, 0, 10, 100)), "priorityslope": 0.5}
    if rng.random() < 0.7:
        requeuing = {"timeInSeconds": 30, "maxTimeInSeconds": 60, "maxNumRequeuings": 2}
        requeuing |= {"initialTimeInSeconds": 5, "growthType": "linear", "numRequeuings": 0}
        duration = {"limit": rng.choice((20, 600)), "expected": 10}
        spec["schedulingSpec"] = {
            "minAvailable": 1,
            "requeuing": requeuing,
            "dispatchDuration": duration,
        }
    drawn = generic(name, *templates, completion=rng.choice(("", "Complete")), **spec)
    if rng.random() < 0.3:
        asked = {"replicas": 2, "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
        drawn["spec"]["resources"]["GenericItems"][0]["custompodresources"] = [asked]
    return drawn


def _v1beta2(rng: Random, name: str, templates: list[Json]) -> Json:
    drawn = components(name, *templates, **({"suspend": True} if rng.random() < 0.05 else {}))
    component = drawn["spec"]["components"][0]
    if component["template"]["kind"] in ("Job", "Deployment") and rng.random() < 0.5:
        component["podSets"] = [{"path": "template.spec.template", "replicas": 2}]
        infos = {"nodeSelector": {"disk": "ssd"}, "tolerations": [_toleration()]}
        component["podSetInfos"] = [infos if rng.random() < 0.3 else {"labels": {"a": "b"}}]
    return drawn


_GRACES = (
    *("admissionGracePeriodDuration", "warmupGracePeriodDuration", "failureGracePeriodDuration"),
    *("retryPausePeriodDuration", "forcefulDeletionGracePeriodDuration"),
    *("deletionOnFailureGracePeriodDuration", "successTTLDuration"),
)


def _annotate(rng: Random, metadata: Json) -> None:
    notes = {f"{PREFIX}{name}": "20s" for name in _GRACES if rng.random() < 0.3}
    if rng.random() < 0.3:
        notes |= {f"{PREFIX}retryLimit": "3", f"{PREFIX}terminalExitCodes": "3,4"}
    if rng.random() < 0.2:
        notes[f"{GROUP}/never-preempt"] = "true"
    metadata |= {"annotations": notes, "labels": {QUEUE_NAME: "red"}}
    if rng.random() < 0.7:
        metadata["labels"][TREE] = rng.choice(LEAVES)


def _item(rng: Random, name: str) -> Json:
    made: Json = rng.choice(_ITEMS)(rng, name)
    template = made["spec"].get("template", made) if "spec" in made else None
    if template is not None:
        _furnish(rng, template)
    return made


def _job(rng: Random, name: str) -> Json:
    made = job(name, rng.choice((1, 2, 8)), rng.choice(("100m", "1", "3")), rng.choice((1, 5, 30)))
    more = {"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 30, "backoffLimit": 2}
    made["spec"] |= {key: value for key, value in more.items() if rng.random() < 0.4}
    if rng.random() < 0.3:
        made["spec"] |= {"completionMode": "Indexed", "backoffLimitPerIndex": 1}
        made["spec"]["maxFailedIndexes"] = 1
    return made


def _deployment(rng: Random, name: str) -> Json:
    made = deployment(name, rng.choice((0, 1, 3)), rng.choice(("100m", "2")))
    made["spec"] |= {"minReadySeconds": 1, "progressDeadlineSeconds": 60, "revisionHistoryLimit": 1}
    return made


def _stateful_set(rng: Random, name: str) -> Json:
    made = deployment(name, 2, rng.choice(("100m", "2")))
    made["spec"] |= {"serviceName": name, "ordinals": {"start": 1}, "minReadySeconds": 1}
    return made | {"kind": "StatefulSet"}


def _pod(rng: Random, name: str) -> Json:
    return pod(name, rng.choice(("100m", "1")), rng.choice((None, 1, 20)))


_ITEMS: tuple[Callable[[Random, str], Json], ...] = (
    *(_job, _job, _job, _deployment, _stateful_set, _pod, _pod),
    lambda rng, name: config_map(name),
)


def _furnish(rng: Random, template: Json) -> None:
    """Give a pod template what makes a difference to fit, time or room."""
    spec = template["spec"]
    main = spec["containers"][0]
    main["resources"] = {"requests": {"cpu": main["resources"]["requests"]["cpu"]}}
    options: tuple[Json, ...] = (
        {"terminationGracePeriodSeconds": 5},
        {"activeDeadlineSeconds": 60},
        {"nodeSelector": {"disk": "ssd"}},
        {"tolerations": [_toleration()]},
        {"affinity": {"nodeAffinity": _affinity(rng)}},
        {"affinity": {"podAntiAffinity": _anti_affinity(template)}},
        {"topologySpreadConstraints": [_spread()]},
        {"resources": {"requests": {"cpu": "1"}}},
        {"initContainers": [_sidecar(main)]},
    )
    for option in options:
        if rng.random() < 0.25:
            spec |= option
    if rng.random() < 0.5:
        amounts = main["resources"]["requests"] | {"memory": "64Mi", "ephemeral-storage": "1Gi"}
        main["resources"] = {"requests": amounts, "limits": {"memory": "128Mi"}}
    if rng.random() < 0.2:
        main["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    if rng.random() < 0.3 and template.get("kind") != "Pod":
        metadata = template.setdefault("metadata", {})
        wish = rng.choice(("required", "preferred"))
        notes = {f"kueue.x-k8s.io/podset-{wish}-topology": rng.choice(LEVELS)}
        if rng.random() < 0.5:  # others may ask for something else
            notes["kueue.x-k8s.io/podset-group-name"] = "together"
        metadata["annotations"] = notes


def _toleration() -> Json:
    return {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 60,
    }


def _affinity(rng: Random) -> Json:
    rule = {"key": "generation", "operator": rng.choice(("Gt", "Lt")), "values": ["3"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    preferred = {"weight": 50, "preference": {"matchExpressions": [rule]}}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": terms,
        "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
    }


def _anti_affinity(template: Json) -> Json:
    template.setdefault("metadata", {}).setdefault("labels", {})["role"] = "apart"
    term = {
        "labelSelector": {"matchLabels": {"role": "apart"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _spread() -> Json:
    return {
        "maxSkew": 1,
        "topologyKey": LEVELS[1],
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"a": "b"}},
    }


def _sidecar(main: Json) -> Json:
    return {
        "name": "side",
        "image": "busybox",
        "restartPolicy": "Always",
        "resources": copy.deepcopy(main["resources"]),
    }


def trees(seed: int, number: int) -> list[Json]:
    """QuotaSubtrees of the tree, one of them with extreme shares."""
    rng = Random(f"{seed}/tree/{number}")
    made = [subtree("teams", TREE, teams=20), subtree("leaves", TREE, "teams", red=8, blue=8)]
    amounts = made[1]["spec"]["children"][0]["quotas"]["requests"]
    amounts["cpu"] = rng.choice(("8", "0", "9223372036854775807", "1n", "999999999999Ei"))
    return made
