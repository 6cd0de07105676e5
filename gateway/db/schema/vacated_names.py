# SPDX-License-Identifier: Apache-2.0
"""Names that restricted objects have left, with the restrictions that the objects had there."""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Column, DateTime, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

vacated_names = Table(
    "vacated_names",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True, server_default=text("gen_random_uuid()")),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), nullable=False),
    Column("path_key", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("policy_id", UUID(as_uuid=True), ForeignKey("data_policies.id", ondelete="CASCADE"), nullable=False),
    Column("tag_id", UUID(as_uuid=True), ForeignKey("tags.id", ondelete="CASCADE")),
    Column("column_name", Text),
    Column("released", ARRAY(Integer), nullable=False),
    now("vacated_at"),
    Column("taken_by", UUID(as_uuid=True)),
    Column("taken_in", BigInteger),
    Column("announced_at", DateTime(timezone=True)),
    Index("vacated_names_name_idx", "warehouse_id", "path_key", "name_key"),
    Index(None, "policy_id"),
)
"""One row for each restriction of an object that left its name by a rename, a move or a drop.

`path_key` is the folded path of the namespace, and `name_key` the folded name; the name of a namespace is empty. A row
without `tag_id` is a policy that was bound to the object or above it. A row with it is a policy that reached the object
through that tag or names tags, and `column_name` the column with the tag, null for a tag of the whole object.
`released` are the field ids that the policy did not cover. Triggers (`0053_vacated_names.py`) write the rows, and set
`taken_by` to the next object of the name, and `taken_in` to the transaction. `gateway.db.policy_loss` compares them in
that transaction: rows that hold for the new object are deleted, and a permitted loss gets `announced_at`.
"""

Index("vacated_names_tag_id_idx", vacated_names.c.tag_id, postgresql_where=vacated_names.c.tag_id.is_not(None))

Index(
    "vacated_names_taken_in_idx",
    vacated_names.c.taken_in,
    postgresql_where=text("taken_in is not null and announced_at is null"),
)

Index("vacated_names_vacated_at_idx", vacated_names.c.vacated_at, postgresql_where=vacated_names.c.taken_by.is_(None))
