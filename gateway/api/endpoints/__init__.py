# SPDX-License-Identifier: Apache-2.0
"""Endpoints: one module for each noun. Importing this package imports all of them and so serves every operation.

A new noun is a new file here. The order of modules, and of routes, is alphabetical.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _name in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_name}")
