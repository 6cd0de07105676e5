# SPDX-License-Identifier: Apache-2.0
"""Advisory locks of different purposes never have the same keys."""

from __future__ import annotations

import importlib
import pkgutil

import gateway.db


def test_each_purpose_has_a_class_of_its_own() -> None:
    """With a common class, the hash of a sink's name could be the number of another lock."""
    modules = (importlib.import_module(f"gateway.db.{each.name}") for each in pkgutil.iter_modules(gateway.db.__path__))
    classes = {module.__name__: vars(module)["_CLASS"] for module in modules if "_CLASS" in vars(module)}
    assert len(classes) >= 4
    assert len(set(classes.values())) == len(classes), classes
