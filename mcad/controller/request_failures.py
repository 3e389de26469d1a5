"""Failed requests as facts for the core, without a judgement."""

from mcad.core.state.answer import Answer
from mcad.kube.errors import ApiError, KubeError


def answer_of(error: KubeError) -> Answer:
    """The facts of a failed request; status 0 without an answer."""
    if not isinstance(error, ApiError):
        return Answer(0, type(error).__name__, str(error))
    reason = "NamespaceTerminating" if error.namespace_terminating else error.reason
    pause = int((error.retry_after or 0) * 1_000_000)
    return Answer(error.status, reason, error.message, pause)
