"""Why a container does not run, in kubelet's words; malformed states included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.api.waiting_containers import STATUSES, stuck_container
from mcad.core.state.model import Stuck, StuckReason
from mcad.core.state.quotation import quoted
from tests.api.strategies import mutated, shaped

IMAGE, CONTAINER, CRASH = StuckReason.IMAGE, StuckReason.CONTAINER, StuckReason.CRASH
Json = dict[str, Any]


def container(reason: Any, message: Any = "", **fields: Any) -> Json:
    """The status of a container that waits."""
    waiting = {"reason": reason, "message": message}
    return {"name": "main", "state": {"waiting": waiting}} | fields


def stuck(*containers: Any, inits: Any = ()) -> Stuck | None:
    return stuck_container(
        {"containerStatuses": list(containers), "initContainerStatuses": list(inits)}
    )


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        *(("ErrImagePull", IMAGE), ("ImagePullBackOff", IMAGE), ("InvalidImageName", IMAGE)),
        *(("ErrImageNeverPull", IMAGE), ("ImageInspectError", IMAGE)),
        *(("RegistryUnavailable", IMAGE), ("SignatureValidationFailed", IMAGE)),
        *(("CreateContainerConfigError", CONTAINER), ("CreateContainerError", CONTAINER)),
        *(("RunContainerError", CONTAINER), ("PreCreateHookError", CONTAINER)),
        *(("PreStartHookError", CONTAINER), ("PostStartHookError", CONTAINER)),
        *(("CreatePodSandboxError", CONTAINER), ("ConfigPodSandboxError", CONTAINER)),
        ("ImageVolumeMountFailed", CONTAINER),
        ("CrashLoopBackOff", CRASH),
        *(("ContainerCreating", None), ("PodInitializing", None), ("", None), (7, None)),
        *((None, None), ([], None), ("SomethingNew", None)),
    ],
)
def test_the_reasons_of_kubelet(reason: Any, kind: StuckReason | None) -> None:
    found = stuck(container(reason, "words"))
    assert (found.reason if found else None) is kind
    if found is not None:
        assert found.message.startswith("container main: ")
        assert found.message.endswith("words”")


NOT_FOUND = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/team/app:v1":'
    " docker.io/team/app:v1: not found"
)
UNAVAILABLE = "image pull failed for team/app:v1 because the registry is unavailable: timeout"
BACK_OFF = 'Back-off pulling image "team/app:v1"'
CRASHED = "back-off {} restarting failed container=main pod=a-0_default(0d5c-{})"


def ended(code: Any, reason: Any = "Error") -> Json:
    return {"lastState": {"terminated": {"exitCode": code, "reason": reason}}}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (container("ErrImagePull", NOT_FOUND), f"ImagePullBackOff: ErrImagePull: {NOT_FOUND}"),
        (
            container("ImagePullBackOff", f"{BACK_OFF}: ErrImagePull: {NOT_FOUND}"),
            f"ImagePullBackOff: ErrImagePull: {NOT_FOUND}",
        ),
        (container("ImagePullBackOff", BACK_OFF), f"ImagePullBackOff: {BACK_OFF}"),
        (
            container("ImagePullBackOff", f"{BACK_OFF}: ErrImagePull: no space left"),
            f"ImagePullBackOff: {BACK_OFF}: ErrImagePull: no space left",
        ),
        (container("ImagePullBackOff"), "ImagePullBackOff"),
        (
            container("ErrImageNeverPull", "not present with pull policy of Never"),
            "ErrImageNeverPull: not present with pull policy of Never",
        ),
        (
            container("CreateContainerConfigError", 'configmap "settings" not found'),
            'CreateContainerConfigError: configmap "settings" not found',
        ),
        (
            container("RunContainerError", "exec: \n  'foo':\tnot found"),
            "RunContainerError: exec: 'foo': not found",
        ),
        (
            container("CrashLoopBackOff", CRASHED.format("10s", 1)),
            "CrashLoopBackOff: back-off restarting failed container",
        ),
        (
            container("CrashLoopBackOff", CRASHED.format("5m0s", 1), **ended(137, "OOMKilled")),
            "CrashLoopBackOff: back-off restarting failed container:"
            " last exit code 137 (OOMKilled)",
        ),
        (
            container("CrashLoopBackOff", "other words", **ended(1, None)),
            "CrashLoopBackOff: other words: last exit code 1",
        ),
    ],
)
def test_the_words_of_kubelet(status: Json, message: str) -> None:
    found = stuck(status)
    assert found is not None
    reason, _, words = message.partition(": ")
    words, colon, end = words.partition(": last exit")
    parts = filter(None, (f"container main: {reason}", quoted(words)))
    assert found.message == ": ".join(parts) + colon + end


@pytest.mark.parametrize(
    "tries",
    [
        [
            container("ErrImagePull", NOT_FOUND),
            container("ImagePullBackOff", f"{BACK_OFF}: ErrImagePull: {NOT_FOUND}"),
        ],
        [
            container("RegistryUnavailable", UNAVAILABLE),
            container("ImagePullBackOff", f"{BACK_OFF}: RegistryUnavailable: {UNAVAILABLE}"),
        ],
        [
            container("ErrImagePull", f"dial: read udp 10.0.0.{n}:4{n}1->10.0.0.9:53: timeout")
            for n in range(1, 4)
        ],
        [
            container("CrashLoopBackOff", CRASHED.format(wait, pod), **ended(1))
            for wait, pod in (("10s", 1), ("2m40s", 1), ("5m0s", 2))
        ],
    ],
    ids=["pull", "registry", "ports", "crashes"],
)
def test_tries_that_fail_alike_have_equal_records(tries: list[Json]) -> None:
    records = {stuck(one) for one in tries}
    assert None not in records
    assert len(records) == 1


def test_another_cause_is_another_record() -> None:
    """Else the test above could not fail."""
    one, other = container("ErrImagePull", NOT_FOUND), container("ErrImagePull", UNAVAILABLE)
    assert stuck(one) != stuck(other)
    crash = container("CrashLoopBackOff", CRASHED.format("10s", 1))
    assert stuck(crash | ended(1)) != stuck(crash | ended(2))


def test_the_first_container_that_is_stuck_is_told() -> None:
    runs = {"name": "first", "state": {"running": {}}}
    crashes = container("CrashLoopBackOff", name="second")
    pulls = container("ErrImagePull", name="third")
    hangs = container("CreateContainerError", name="init")
    assert stuck(runs, crashes, pulls) == Stuck(CRASH, "container second: CrashLoopBackOff")
    assert stuck(runs, crashes, inits=[hangs]) == Stuck(
        CONTAINER, "container init: CreateContainerError"
    )
    assert stuck(runs) is None


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    found = stuck(container("ErrImagePull", f"failed to pull {'x' * 1000}: not found"))
    assert found is not None
    assert 254 <= len(found.message) <= 256
    assert found.message.startswith("container main: ImagePullBackOff: “ErrImagePull: failed to")
    assert found.message.endswith("x: not found”")


KEYS = (*STATUSES, "state", "waiting", "reason", "message", "lastState", "terminated", "exitCode")
STATES = [
    {
        "containerStatuses": [
            container("ErrImagePull", NOT_FOUND),
            container("CrashLoopBackOff", CRASHED.format("10s", 1), **ended(1)),
        ],
        "initContainerStatuses": [container("ImagePullBackOff", f"{BACK_OFF}: {UNAVAILABLE}")],
    }
]


@given(st.one_of(st.dictionaries(st.sampled_from(KEYS), shaped(*KEYS)), mutated(STATES)))
def test_no_status_raises(status: Any) -> None:
    if isinstance(status, dict):
        stuck_container(status)


def test_a_word_of_a_megabyte_is_no_work() -> None:
    """An image name of any length is in kubelet's message as the user wrote it. It took minutes at
    16 kB: an address was looked for at each character, up to the end of the word each time."""
    image = "a:1" * 350_000
    found = stuck(container("InvalidImageName", f'couldn\'t parse image name "{image}"'))
    assert found is not None
    assert found.message.endswith('a:1a:1"”')
    assert 254 <= len(found.message) <= 256
