# SPDX-License-Identifier: Apache-2.0
"""Rename endpoints of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.renames import RenameTable, RenameView
from gateway.api.serves import serve
from gateway.catalog.renames import Renames

serve(RenameTable, Renames.table)
serve(RenameView, Renames.view)
