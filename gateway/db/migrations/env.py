# SPDX-License-Identifier: Apache-2.0
"""The entry point of Alembic. Migrations run on the connection that `gateway.db.migrate` holds."""

from alembic import context

from gateway.db.schema.whole import whole_schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=whole_schema(),
    # Each migration holds only its own locks, and a failed one leaves those before it in place.
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
