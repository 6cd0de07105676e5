# SPDX-License-Identifier: Apache-2.0
"""Alembic's entry: migrations run on the connection that `gateway.db.migrate` holds."""

from alembic import context

from gateway.db.schema.whole import whole_schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=whole_schema(),
    # A step holds its locks for itself alone, and one that fails leaves those before it in place.
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
