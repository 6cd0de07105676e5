# SPDX-License-Identifier: Apache-2.0
"""The type of rows whose columns a statement builds at run time."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy import Row

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
