"""Loads settings from a file, the environment and ``--set``; later ones override earlier ones."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import ValidationError

from mcad.api.config import Config
from mcad.api.located_fields import describe
from mcad.api.removed_settings import REMOVED, refusal
from mcad.api.validation import explain
from mcad.api.wire import Json, Map
from mcad.api.yaml_text import read_yaml
from mcad.core.state.spelling import did_you_mean

ENVIRONMENT_PREFIX = "MCAD_"

_SIMILAR = 0.85  # higher than the default: the prefix, which is always right, counts

NAMES: Mapping[str, str] = {
    info.alias or name: ENVIRONMENT_PREFIX + name.upper()
    for name, info in Config.model_fields.items()
}
"""All settings, with their environment variables."""

_REMOVED_VARIABLES: Mapping[str, str] = {
    ENVIRONMENT_PREFIX + re.sub("([A-Z])", r"_\1", name).upper(): name for name in REMOVED
}
"""The environment variables of removed settings; a field never had one."""


class ConfigError(Exception):
    """A faulty setting, in one line: its source, its name, and how to correct it."""


def load(
    path: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    sets: Sequence[str] = (),
) -> Config:
    """Defaults, then the file, then ``MCAD_...``, then ``--set KEY=VALUE``; the last one wins.

    ConfigError if any of them is invalid.
    """
    layers = _Layers()
    if path is not None:
        _add_file(layers, Path(path))
    _add_environment(layers, environ or {})
    for text in sets:
        _add_set(layers, text)
    try:
        return Config.model_validate(layers.values)
    except ValidationError as error:
        raise ConfigError(_explain(error, layers)) from None


@dataclass(slots=True)
class _Layers:
    """The settings so far, and the source of each."""

    values: Map = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def put(self, source: str, name: str, value: Json, inner: str = "") -> None:
        """Set one value, or one entry of a map."""
        if message := refusal(name, {inner: value} if inner else value):
            raise ConfigError(f"{source}: {message}")
        if name not in NAMES:
            hint = did_you_mean(name, NAMES) or f"Settings: {', '.join(NAMES)}."
            raise ConfigError(f"{source}: there is no setting {name!r}. {hint}")
        if inner:
            old = self.values.get(name) or {}
            if not isinstance(old, dict):
                raise ConfigError(f"{source}: {name} is {describe(old)}, not a map.")
            value = old | {inner: value}
        self.values[name] = value
        self.sources[name] = source


def _add_file(layers: _Layers, path: Path) -> None:
    source = f"--config {path}"
    try:
        content = _from_yaml(path.read_text(encoding="utf-8"), source)
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{source}: is not text; write YAML or JSON in UTF-8.") from None
    if content is None:
        return
    if not isinstance(content, dict):
        raise ConfigError(f"{source}: must be a map of settings, not {describe(content)}.")
    for name, value in content.items():
        layers.put(source, str(name), value)


def _add_environment(layers: _Layers, environ: Mapping[str, str]) -> None:
    """Add the environment variables. Kubernetes adds MCAD_SERVICE_HOST and more for a Service
    called mcad, so an unknown variable is an error only if it is similar to a known one."""
    names = {variable: name for name, variable in NAMES.items()}
    for variable, text in sorted(environ.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = names.get(variable) or _REMOVED_VARIABLES.get(variable)
        if name:
            layers.put(variable, name, _from_yaml(text, variable))
            continue
        if hint := did_you_mean(variable, names, similar=_SIMILAR):
            raise ConfigError(f"{variable}: there is no such setting. {hint}")


def _add_set(layers: _Layers, text: str) -> None:
    source = f"--set {text}"
    key, equals, value = text.partition("=")
    # Only the first dot separates: names of resources and namespaces may have dots, too.
    name, _, inner = key.strip().partition(".")
    if not equals or not name:
        raise ConfigError(f"{source}: must be KEY=VALUE, like backoffTime=5.")
    layers.put(source, name, _from_yaml(value, source), inner)


def _from_yaml(text: str, source: str) -> Json:
    try:
        return read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(
            f"{source}: is not valid YAML{line}; quote the value or indent it."
        ) from None


def _explain(error: ValidationError, layers: _Layers) -> str:
    """The first fault, in one line."""
    place, message = next(explain(error))
    text = " ".join(message.split())
    if not place:
        return f"configuration: {text}"  # a conflict of settings, each may be valid by itself
    where = ".".join(str(part) for part in place)
    source = layers.sources.get(str(place[0]), "defaults")
    return f"{source}: {where}: {text}"
