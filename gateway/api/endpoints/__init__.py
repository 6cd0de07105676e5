# SPDX-License-Identifier: Apache-2.0
"""Endpoints, one module for each noun. Importing this package imports all of them and registers all routes.

A new noun needs only a new file here. Modules are imported in alphabetical order, which is the order of routes.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _name in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_name}")
