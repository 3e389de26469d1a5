"""SparkApplications (sparkoperator.k8s.io/v1beta2).

Facts from github.com/kubeflow/spark-operator 2.4.0: SparkApplicationSpec.suspend, restartPolicy and
dynamicAllocation; SparkApplicationStatus.applicationState (state, errorMessage), executorState,
executionAttempts, submissionAttempts, terminationTime. Acts of the operator: the state machine of
internal/controller/sparkapplication/controller.go and ShouldRetry of pkg/util.
"""

from mcad.api.live.reading import LiveObject, LiveSet, Reading, brief, wanted
from mcad.api.spark import DRIVER, is_dynamic
from mcad.api.wire import as_text, parse_instant
from mcad.core.state.model import ItemState, Wanted

_ENDS = {"COMPLETED": ItemState.SUCCEEDED, "FAILED": ItemState.FAILED}
_RUNNING = ("RUNNING", "UNKNOWN")
_TO_COME = ("INVALIDATING", "SUSPENDING", "SUSPENDED")  # taken back or changed: it is made anew
_ENDING = ("SUCCEEDING", "FAILING", "SUBMISSION_FAILED")
_RERUN = "PENDING_RERUN"


def read_application(obj: LiveObject) -> Reading:
    """The driver, which asks for its executors when it runs."""
    told = obj.status.at("applicationState").value
    word = as_text(told.get("state"))
    state = _state(obj, word)
    is_failed = state in (ItemState.FAILED, ItemState.RETRYING)
    return Reading(
        _pods(obj, word, state),
        state,
        brief(as_text(told.get("errorMessage"))) if is_failed else "",
        max(0, parse_instant(obj.status.value.get("terminationTime"))) if word in _ENDS else 0,
        (word,),
    )


def _state(obj: LiveObject, word: str) -> ItemState:
    is_retried = word == _RERUN or (word in _ENDING and _is_tried_again(obj, word))
    return ItemState.RETRYING if is_retried else _ENDS.get(word, ItemState.PROGRESSING)


def _is_tried_again(obj: LiveObject, word: str) -> bool:
    policy = obj.spec.at("restartPolicy")
    if policy.value.get("type") == "Always":
        return True
    limits = {
        "FAILING": ("onFailureRetries", "executionAttempts"),
        "SUBMISSION_FAILED": ("onSubmissionFailureRetries", "submissionAttempts"),
    }
    if policy.value.get("type") != "OnFailure" or word not in limits:
        return False
    limit, attempts = limits[word]
    is_limited = policy.value.get(limit) is not None
    return is_limited and obj.status.count(attempts, 0) <= policy.count(limit, 0)


def _pods(obj: LiveObject, word: str, state: ItemState) -> dict[str, Wanted]:
    if word in _ENDS or (word in _ENDING and state is not ItemState.RETRYING):
        return obj.none()
    if word in _TO_COME:
        return obj.later()
    return {one.path: _of_role(obj, one, word) for one in obj.sets}


def _of_role(obj: LiveObject, one: LiveSet, word: str) -> Wanted:
    if one.path.endswith(f".{DRIVER}"):
        return wanted(one.pods)
    if word not in _RUNNING:
        return wanted(0, one.pods)
    if not is_dynamic(obj.spec.value):
        return wanted(one.pods)
    states = obj.status.at("executorState").value.values()
    live = sum(state in ("PENDING", "RUNNING") for state in states)
    now = min(one.pods, live)  # the driver lets idle executors go, and asks for others later
    return wanted(now, one.pods - now)
