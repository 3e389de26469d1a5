"""docs/reference/settings.md: every setting with its default, variable and chart value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from mcad.api.additions import Injection
from mcad.api.autopilot import AutopilotSettings
from mcad.api.config import Config
from mcad.api.identity import Impersonate, LeaderElection
from mcad.api.removed_settings import REMOVED
from mcad.api.scale_up.settings import ScaleUpSettings
from mcad.api.sources import NAMES
from mcad.api.strict import Strict, Unit
from mcad.api.tolerance import FaultToleranceSettings
from tests.documents.pages import DOCS, ROOT, code, escaped, table, wrapped

PAGE = DOCS / "reference" / "settings.md"
VALUES = ROOT / "deploy" / "helm" / "mcad" / "values.yaml"

PARTS: dict[str, type[Strict]] = {
    "faultTolerance": FaultToleranceSettings,
    "autopilot": AutopilotSettings,
    "inject": Injection,
    "scaleUp": ScaleUpSettings,
    "leaderElection": LeaderElection,
    "impersonate": Impersonate,
}
LONG = {
    "wrappedResources": "see `mcad rbac`",
    "watchNamespaces": "all",
    "resourceTaints": "`nvidia.com/gpu`: `autopilot.ibm.com/gpuhealth`",
}
"""Defaults that are too long for a cell."""

HOUR_S = 3600


def generated() -> str:
    """The generated part of the page."""
    lines = [*wrapped(_places()), ""]
    lines += table(("setting", "default", "meaning"), _rows(Config))
    lines.append("")
    for name, part in PARTS.items():
        lines += (f"## {name}", "")
        lines += table(("field", "default", "meaning"), _rows(part))
        lines.append("")
    lines += ("## Removed", "", "`mcad run` refuses these, and so does the chart:", "")
    removed = ((code(name), escaped(one.advice)) for name, one in REMOVED.items())
    lines += (*table(("setting of before", "what to do"), removed), "")
    return "\n".join(lines)


def _places() -> str:
    """Where the chart and the environment have the settings."""
    values = yaml.safe_load(VALUES.read_text())
    at_top = [code(name) for name, _ in _fields(Config) if name in values]
    first = next(name for name, _ in _fields(Config))
    return (
        f"The variable of `{first}` is `{NAMES[first]}`, and so on. In the chart, "
        f"{', '.join(at_top[:-1])} and {at_top[-1]} are values themselves; all other settings are "
        f"under `config`, such as `config.{first}`."
    )


def _rows(part: type[Strict]) -> Iterator[tuple[str, str, str]]:
    for name, field in _fields(part):
        yield code(name), _default(name, field), _meaning(field)


def _fields(part: type[Strict]) -> Iterator[tuple[str, FieldInfo]]:
    yield from ((field.alias or name, field) for name, field in part.model_fields.items())


def _meaning(field: FieldInfo) -> str:
    return escaped(field.description or "")


def _default(name: str, field: FieldInfo) -> str:
    if name in LONG:
        return LONG[name]
    if name in PARTS:
        return f"[below](#{name.lower()})"
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    unit = next((one.name for one in field.metadata if isinstance(one, Unit)), "")
    return _shown(value, unit)


def _shown(value: Any, unit: str) -> str:
    if value is None or value in ("", (), {}):
        return "none"
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, tuple):
        return ", ".join(code(str(one)) for one in value)
    if unit == "s" and value >= HOUR_S and value % HOUR_S == 0:
        return f"{value // HOUR_S} h"
    return f"{value:g} {unit}".strip() if isinstance(value, int | float) else code(str(value))
