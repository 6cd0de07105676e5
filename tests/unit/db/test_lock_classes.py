# SPDX-License-Identifier: Apache-2.0
"""Advisory locks of different purposes never have the same keys."""

from __future__ import annotations

import importlib
import pkgutil

import gateway.db


def test_each_purpose_has_a_class_of_its_own() -> None:
    """With a common class, the hash of a sink's name could be the number of another lock."""
    found = pkgutil.walk_packages(gateway.db.__path__, f"{gateway.db.__name__}.")
    modules = [importlib.import_module(each.name) for each in found if ".migrations" not in each.name]
    classes = {module.__name__: vars(module)["_CLASS"] for module in modules if "_CLASS" in vars(module)}
    assert len(classes) >= 4
    assert len(set(classes.values())) == len(classes), classes
