# SPDX-License-Identifier: Apache-2.0
"""Rows of a project or a warehouse: content prevents its deletion, other rows are deleted with it."""

from __future__ import annotations

from gateway.db.schema.whole import whole_schema

#: Content, which is checked before a deletion (`projects.delete_if_empty`, `warehouses.is_empty`, `unfinished`).
CONTENT = {
    "projects": {"warehouses", "roles"},
    "warehouses": {"namespaces", "tables", "pending_files"},
}


def test_non_content_rows_are_deleted_with_their_project_or_warehouse() -> None:
    for target, content in CONTENT.items():
        staying = {
            table.name
            for table in whole_schema().tables.values()
            for key in table.foreign_keys
            if key.column.table.name == target and key.ondelete != "CASCADE"
        }
        assert staying == content, "expected `on delete cascade` on every foreign key but those of content"
