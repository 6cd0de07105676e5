# SPDX-License-Identifier: Apache-2.0
"""Import every module whose name ends in `routes` below `gateway/features/`, which registers its routes."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import gateway.features

for _module in sorted(each.name for each in walk_packages(gateway.features.__path__, f"{gateway.features.__name__}.")):
    if _module.endswith("routes") and _module != __name__:
        import_module(_module)
