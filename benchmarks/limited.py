"""``mcad`` with a client that sends at most ``BENCH_QPS`` requests a second for each kind.

As client-go limits controllers, for comparisons: a bucket of twice as many tokens for each kind.
The dispatcher itself has no such limit; it bounds how many requests are under way.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import defaultdict

from mcad.cli.start import main
from mcad.kube.port import Request, Response
from mcad.kube.rest import RestApi

_KIND = re.compile(r"^/apis?(?:/[^/]+){1,2}?(?:/namespaces/[^/]+)?/([a-z]+)(?:/|$)")
_QPS = float(os.environ["BENCH_QPS"])
_send = RestApi.request
_next: defaultdict[str, float] = defaultdict(float)


async def _in_turn(api: RestApi, request: Request, timeout: float | None = None) -> Response:
    """Wait for a token, then send."""
    found = _KIND.match(request.path)
    kind = found[1] if found else ""
    now = asyncio.get_running_loop().time()
    _next[kind] = at = max(_next[kind], now - 2) + 1 / _QPS
    await asyncio.sleep(max(0.0, at - now))
    return await _send(api, request, timeout)


if __name__ == "__main__":
    RestApi.request = _in_turn  # type: ignore[method-assign]
    main()
