# SPDX-License-Identifier: Apache-2.0
"""Import all routes: the modules of the folders of nouns whose names end in `routes`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import gateway.features

for _module in sorted(each.name for each in walk_packages(gateway.features.__path__, f"{gateway.features.__name__}.")):
    if _module.endswith("routes") and _module != __name__:
        import_module(_module)
