# SPDX-License-Identifier: Apache-2.0
"""All database tables together, to compare them with the migrations."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from sqlalchemy import MetaData

from gateway.db import schema
from gateway.db.schema.base import metadata


def whole_schema() -> MetaData:
    """Import every module of this package and return the metadata with all tables."""
    for module in iter_modules(schema.__path__):
        import_module(f"{schema.__name__}.{module.name}")
    return metadata
