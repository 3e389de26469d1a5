"""Requests to ``scale`` and ``log``, which have forms of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcad.kube.port import Request
from mcad.sim import deletion, failures
from mcad.sim.kinds import Kind
from mcad.sim.objects import decoding
from mcad.sim.objects.builtin import type_of
from mcad.sim.registry import Registry, check_name
from mcad.sim.serving import bodies, scale
from mcad.sim.serving.patches import change_of
from mcad.sim.serving.routing import Target
from mcad.sim.writes import Write

Json = dict[str, Any]
Answer = tuple[int, Json | bytes]

_SILENCE = b"(simulated pods run nothing, so there is nothing they could have written)\n"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a subresource."""

    registry: Registry
    request: Request
    target: Target
    how: Write

    @property
    def name(self) -> str:
        """The object whose subresource it is."""
        return self.target.name

    def present(self) -> Json:
        """That object; raises Failure 404."""
        return self.registry.get(self.target.kind, self.target.key)

    def body(self, kind: Kind) -> Json:
        """What was sent; raises Failure 400 or 415."""
        return bodies.read(self.request, kind)


def find(method: str, name: str, kind: Kind) -> Callable[[Call], Answer] | None:
    """The handler of the request, if it is one of these."""
    if name == "log" and kind.storage == deletion.PODS:
        return read_log if method == "GET" else None
    return _ANSWERS.get((method, name))


def read_log(call: Call) -> Answer:
    """GET of a pod's log; raises Failure 404."""
    call.present()
    return 200, _SILENCE


def read_scale(call: Call) -> Answer:
    """GET of a Scale; raises Failure 404."""
    return 200, scale.read(call.target.kind, call.present())


def put_scale(call: Call) -> Answer:
    """PUT of a Scale; raises Failure."""
    return _write_scale(call, call.body(scale.KIND))


def patch_scale(call: Call) -> Answer:
    """PATCH of a Scale; raises Failure."""
    present = scale.read(call.target.kind, call.present())
    return _write_scale(call, change_of(scale.KIND, call.request)(present))


def _write_scale(call: Call, wanted: Json) -> Answer:
    struct = type_of(scale.KIND)
    if struct is not None:
        try:
            wanted, _ = decoding.decode(wanted, struct)
        except decoding.DecodeError as error:
            text = f'Scale in version "v1" cannot be handled as a Scale: {error}'
            raise failures.bad_request(text) from error
    wanted.setdefault("metadata", {})
    check_name(wanted, call.name)

    def change(obj: Json) -> Json:
        return scale.write(call.target.kind, obj, wanted)

    how = Write(dry_run=call.how.dry_run)
    written = call.registry.patch(call.target.kind, call.target.key, change, how)
    return 200, scale.read(call.target.kind, written)


_ANSWERS: dict[tuple[str, str], Callable[[Call], Answer]] = {
    ("GET", "scale"): read_scale,
    ("PUT", "scale"): put_scale,
    ("PATCH", "scale"): patch_scale,
}
