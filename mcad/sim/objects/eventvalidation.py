"""What must hold of an Event, which follows rules of its own and depends on the group it comes by.

Source: ``k8s.io/kubernetes/pkg/apis/core/validation/events.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.objects.causes import invalid, required, too_long

Json = dict[str, Any]

_TEXT_MAX = 128
_NOTE_MAX = 1024
_TYPES = ("Normal", "Warning")


def event_faults(kind: Kind, event: Json) -> list[Cause]:
    """What is wrong with a new Event, in the words of kube-apiserver."""
    found = [*_object_faults(kind, event)]
    if event.get("eventTime"):
        found += _reporter_faults(event)
    if kind.group:
        if not event.get("eventTime"):
            found.append(required("eventTime"))
        if event.get("type") not in _TYPES:
            text = event.get("type") or ""
            found.append(invalid("type", "", f"has invalid value: {text}"))
    return found


def _object_faults(kind: Kind, event: Json) -> Iterator[Cause]:
    """The object is in the namespace of its Event, or in none and the Event in ``default``."""
    about = event.get("regarding" if kind.group else "involvedObject") or {}
    there, here = about.get("namespace") or "", event["metadata"].get("namespace") or ""
    if there != here and (there or here != "default"):
        yield invalid("involvedObject.namespace", there, "does not match event.namespace")


def _reporter_faults(event: Json) -> Iterator[Cause]:
    controller = event.get("reportingController") or event.get("reportingComponent")
    if not controller:
        yield required("reportingController")
    for name in ("reportingInstance", "action", "reason"):
        text = event.get(name) or ""
        if not text:
            yield required(name)
        elif len(text) > _TEXT_MAX:
            yield too_long(name, _TEXT_MAX, "character")
    note = event.get("note") or event.get("message") or ""
    if len(note) > _NOTE_MAX:
        yield too_long("message", _NOTE_MAX, "character")
