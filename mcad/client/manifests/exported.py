"""Takes from an exported object what the cluster has added to it: what its owner wrote is left.

An object is exported if it has a uid, which manifests do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from mcad.api.manifest import SERVER_FIELDS
from mcad.api.wire import Json, Map, as_map, as_text

_NOTES = frozenset(
    {
        "batch.kubernetes.io/job-tracking",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
_NOTE_PREFIX = "deployment.kubernetes.io/"
"""Annotations of Deployments and their ReplicaSets: revisions and replicas."""

_CONTROLLER_UID = frozenset({"batch.kubernetes.io/controller-uid", "controller-uid"})
_JOB_LABELS = _CONTROLLER_UID | {"batch.kubernetes.io/job-name", "job-name"}
"""Labels that the API server gives to the pods of a Job. It refuses those of another Job."""

_OF_POD = ("ephemeralContainers", "nodeName", "preemptionPolicy", "priority")
"""Fields of a Pod that kube-scheduler, an admission plugin or a debugger has set."""


def as_written(obj: Map) -> Map:
    """The object as a manifest. An object without a uid stays as it is, but for fields that the API
    server ignores or refuses."""
    kept = {key: value for key, value in obj.items() if key != "status"}
    group = as_text(obj.get("apiVersion")).rpartition("/")[0]
    kind = as_text(obj.get("kind"))
    given = obj.get("metadata")
    if not isinstance(given, dict):
        return kept
    kept["metadata"] = _metadata(given)
    if (group, kind) == ("batch", "Job"):
        return _job(kept)
    clean = _OF_EXPORTED.get((group, kind)) if given.get("uid") else None
    if clean is not None and isinstance(kept.get("spec"), dict):
        kept["spec"] = clean(kept["spec"])
    return kept


def _metadata(given: Map) -> Map:
    left_out = {*SERVER_FIELDS} if given.get("name") else {*SERVER_FIELDS} - {"generateName"}
    if given.get("uid"):
        left_out.add("finalizers")
    kept = _without(given, left_out)
    if isinstance(kept.get("annotations"), dict):
        notes = kept["annotations"]
        ours = [key for key in notes if key in _NOTES or key.startswith(_NOTE_PREFIX)]
        _put(kept, "annotations", _without(notes, ours))
    return kept


def _job(job: Map) -> Map:
    """Without the selector and the labels that make a Job's pods those of this very Job."""
    spec = as_map(job.get("spec"))
    if spec.get("manualSelector") is True:
        return job
    made = {**job, "metadata": _unlabelled(job["metadata"])}
    if not spec:
        return made
    made["spec"] = spec = {**spec}
    template, selector = as_map(spec.get("template")), as_map(spec.get("selector"))
    if isinstance(template.get("metadata"), dict):
        spec["template"] = template | {"metadata": _unlabelled(template["metadata"])}
    if isinstance(selector.get("matchLabels"), dict):
        selector = {**selector}
        _put(selector, "matchLabels", _without(selector["matchLabels"], _CONTROLLER_UID))
        _put(spec, "selector", selector)
    return made


def _unlabelled(metadata: Map) -> Map:
    """Without the labels of a Job's pods; without a controller's uid they are a user's."""
    labels = as_map(metadata.get("labels"))
    if _CONTROLLER_UID.isdisjoint(labels):
        return metadata
    kept = {**metadata}
    _put(kept, "labels", _without(labels, _JOB_LABELS))
    return kept


def _pod(spec: Map) -> Map:
    return _without(spec, _OF_POD)


def _service(spec: Map) -> Map:
    """Without addresses: they are those of the cluster, or still taken. None is a choice."""
    if spec.get("clusterIP") == "None":
        return spec
    return _without(spec, ("clusterIP", "clusterIPs"))


def _without(values: Map, keys: Collection[str]) -> Map:
    return {key: value for key, value in values.items() if key not in keys}


def _put(owner: Map, key: str, value: Json) -> None:
    """Set a map, or remove one that has become empty."""
    if value:
        owner[key] = value
    else:
        del owner[key]


_OF_EXPORTED: Mapping[tuple[str, str], Callable[[Map], Map]] = {
    ("", "Pod"): _pod,
    ("", "Service"): _service,
}
