"""What must hold of a pod's volumes and of where they are mounted."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import duplicate, forbidden, invalid, not_found, required
from mcad.sim.objects.claimvalidation import claim_faults

_NEEDED = {
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
    "configMap": "name",
    "secret": "secretName",
    "nfs": "server",
}
_MODE_MAX = 0o777


def volume_faults(volumes: list[Json], where: str) -> Iterator[Cause]:
    """Faults of the volumes of a pod."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        field, name = f"{where}[{index}]", volume.get("name") or ""
        if not name:
            yield required(f"{field}.name")
        else:
            for fault in names.dns_label(name):
                yield invalid(f"{field}.name", name, fault)
            if name in seen:
                yield duplicate(f"{field}.name", name)
        seen.add(name)
        sources = [key for key in volume if key != "name"]
        for key in sources[1:]:
            yield forbidden(f"{field}.{key}", "may not specify more than 1 volume type")
        for key in sources[:1]:
            yield from _source_faults(key, volume[key], f"{field}.{key}")


def _source_faults(key: str, source: Json, field: str) -> Iterator[Cause]:
    needed = _NEEDED.get(key)
    if needed and not source.get(needed):
        yield required(f"{field}.{needed}")
    if key == "downwardAPI":
        yield from _item_faults(source, field)
    for index, one in enumerate(source.get("sources") or ()):
        if one.get("downwardAPI") is not None:
            yield from _item_faults(one["downwardAPI"], f"{field}.sources[{index}].downwardAPI")
        token = one.get("serviceAccountToken")
        if token is not None and not token.get("path"):
            yield required(f"{field}.path")
    template = source.get("volumeClaimTemplate")
    if key == "ephemeral" and template is None:
        yield required(f"{field}.volumeClaimTemplate")
    elif template is not None:
        yield from claim_faults(template.get("spec") or {}, f"{field}.volumeClaimTemplate.spec")
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= _MODE_MAX:
        detail = "must be a number between 0 and 0777 (octal), both inclusive"
        yield invalid(f"{field}.defaultMode", mode, detail)


def _item_faults(source: Json, field: str) -> Iterator[Cause]:
    for item in source.get("items") or ():
        if not item.get("path"):
            yield required(f"{field}.path")
        reference = item.get("fieldRef")
        if reference is None and item.get("resourceFieldRef") is None:
            yield required(field, "one of fieldRef and resourceFieldRef is required")
        elif reference is not None and not reference.get("fieldPath"):
            yield required(f"{field}.fieldRef.fieldPath")


def mount_faults(container: Json, volumes: set[str | None], where: str) -> Iterator[Cause]:
    """Faults of the mounts of a container, among the names of the pod's volumes."""
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        field, name = f"{where}.volumeMounts[{index}]", mount.get("name") or ""
        path = mount.get("mountPath") or ""
        if not name:
            yield required(f"{field}.name")
        elif name not in volumes:
            yield not_found(f"{field}.name", name)
        if not path:
            yield required(f"{field}.mountPath")
        elif path in seen:
            yield invalid(f"{field}.mountPath", path, "must be unique")
        seen.add(path)
