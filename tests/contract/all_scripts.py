"""Every script, by name."""

from __future__ import annotations

import importlib
import pkgutil

from tests.contract import scripts
from tests.contract.script import recorded

for _module in pkgutil.iter_modules(scripts.__path__):
    importlib.import_module(f"{scripts.__name__}.{_module.name}")

SCRIPTS = {script.name: script for script in recorded()}
