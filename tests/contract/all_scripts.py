"""Every script, by name."""

from __future__ import annotations

import importlib
import pkgutil

from tests.contract import scripts
from tests.contract.script import recorded

for _module in pkgutil.iter_modules(scripts.__path__):
    importlib.import_module(f"{scripts.__name__}.{_module.name}")

SCRIPTS = {script.name: script for script in recorded()}

OVER_HTTP = {
    name for name in SCRIPTS if name.startswith(("create", "forms", "patch", "read", "watch"))
}
"""Those with what only HTTP can spoil: forms of bodies and answers, headers, parameters, streams.

All of them are run in process, where time is virtual and no answer comes late.
"""
