"""LeaderWorkerSets (leaderworkerset.x-k8s.io/v1).

Facts from sigs.k8s.io/lws 0.7.0: LeaderWorkerSetSpec.replicas, startupPolicy,
leaderWorkerTemplate.size and leaderTemplate; LeaderWorkerSetStatus.readyReplicas, the groups with
all of their pods ready. Acts of the controller: Reconcile of pkg/controllers/pod_controller.go,
which makes the workers of a group when its leader is ready.
"""

from mcad.api.kinds import replicas
from mcad.api.live.reading import LiveObject, Reading, wanted


def read_leader_worker_set(obj: LiveObject) -> Reading:
    """With startupPolicy LeaderReady the workers of a group come after its leader. The status does
    not count leaders that are ready, so the workers of a group are due when they are ready, too;
    nothing tells earlier that they are missing."""
    if obj.spec.value.get("startupPolicy") != "LeaderReady":
        return Reading(obj.now())
    groups = replicas(obj.spec)
    ready = min(groups, obj.status.count("readyReplicas", 0))
    size = obj.spec.at("leaderWorkerTemplate").count("size", 1)
    late = (groups - ready) * max(0, size - 1)
    wants = obj.now()
    path = obj.sets[-1].path  # of the workers, or of all pods where leaders have no template
    wants[path] = wanted(wants[path].now - late, min(late, wants[path].now))
    return Reading(wants)
