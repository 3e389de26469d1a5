"""Failed requests as facts for the core, without a judgement.

The API server quotes values that it refuses. These may be those of a Secret or of an environment,
and what enters the core is shown in statuses: so quoted values are left out here. The field and the
reason stay. What an admission webhook says is in the same words, so all of them are a quotation.
"""

import re

from mcad.core.state.answer import Answer
from mcad.core.state.quotation import quoted
from mcad.kube.errors import ApiError, KubeError

_QUOTED = re.compile(
    r"""(?<=\bvalue: )("(?:\\.|[^"\\])*"|[\w.*\[\]]*[\[{].*[\]}](?=: |$))""", re.DOTALL
)
LEFT_OUT = "(left out)"


def without_values(words: str) -> str:
    """What the API server says, without the values that it quotes as invalid, unsupported or
    duplicate."""
    return _QUOTED.sub(LEFT_OUT, words)


def answer_of(error: KubeError) -> Answer:
    """The facts of a failed request; status 0 without an answer."""
    if not isinstance(error, ApiError):
        return Answer(0, type(error).__name__, str(error))
    reason = "NamespaceTerminating" if error.namespace_terminating else error.reason
    pause = int((error.retry_after or 0) * 1_000_000)
    return Answer(error.status, reason, quoted(without_values(error.message)), pause)
