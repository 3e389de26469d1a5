"""How long a failed request waits for its repetition."""

from __future__ import annotations

import pytest

from mcad.core.state.answer import Answer
from mcad.core.state.bounds import REFUSED_WRITE_RETRY, RETRY_BASE, RETRY_MAX, Tries
from mcad.core.state.units import SECOND


@pytest.mark.parametrize("status", [0, 307, 401, 408, 409, 429, 500, 503])
def test_what_passes_by_itself_is_repeated_soon(status: int) -> None:
    tries, answer = Tries(), Answer(status, "", "words")
    pauses = [tries.pause(answer) for _ in range(10)]
    assert (pauses[0], pauses[1], pauses[-1]) == (RETRY_BASE, 2 * RETRY_BASE, RETRY_MAX)
    assert not any(tries.is_lasting(answer) for _ in pauses)


@pytest.mark.parametrize("status", [400, 403, 404, 405, 422])
def test_what_is_refused_outright_is_repeated_slowly_and_said_once(status: int) -> None:
    tries, answer, said = Tries(), Answer(status, "", "words"), []
    for _ in range(10):
        pause = tries.pause(answer)
        said.append(tries.is_lasting(answer))
    assert pause == REFUSED_WRITE_RETRY
    assert said == [False] * 3 + [True] + [False] * 6


def test_a_server_that_says_when_is_asked_then() -> None:
    assert Tries().pause(Answer(429, "", "words", 40 * SECOND)) == 40 * SECOND


def test_what_fails_beside_another_one_does_not_count_twice() -> None:
    tries, answer = Tries(), Answer(403, "", "words")
    assert tries.pause(answer) == tries.pause(answer, count=False)
    assert tries.denials == 1
