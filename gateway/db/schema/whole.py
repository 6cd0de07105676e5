# SPDX-License-Identifier: Apache-2.0
"""All tables at once: what migrations are compared with."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from sqlalchemy import MetaData

from gateway.db import schema
from gateway.db.schema.base import metadata


def whole_schema() -> MetaData:
    """The metadata, after every module of this package has put its tables into it."""
    for module in iter_modules(schema.__path__):
        import_module(f"{schema.__name__}.{module.name}")
    return metadata
