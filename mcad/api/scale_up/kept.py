"""``spec.scaleUp.keepPods``: annotations that keep autoscalers from moving running pods."""

from mcad.api.models import PodSetInfo

ANNOTATIONS = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
KEPT = PodSetInfo(annotations=ANNOTATIONS)
