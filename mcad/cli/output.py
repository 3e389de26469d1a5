"""Figures as JSON or YAML for scripts."""

from __future__ import annotations

import json
from typing import Any

import click
import yaml


def echo_structured(value: Any, form: str) -> None:
    """Print a value as ``json`` or ``yaml``."""
    if form == "json":
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), nl=False)
