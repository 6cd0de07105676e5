# SPDX-License-Identifier: Apache-2.0
"""The entry point of Alembic. Migrations run on the connection that `gateway.db.migrate` holds."""

from collections.abc import Collection, Mapping
from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo

from gateway.db.schema.sql_functions import install_functions
from gateway.db.schema.whole import whole_schema


def _install_functions(
    ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]
) -> None:
    """Install the SQL functions in the transaction that records the newest revision."""
    if set(heads) == set(context.script.get_heads()) and ctx.connection is not None:
        install_functions(ctx.connection)


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=whole_schema(),
    # Each migration commits by itself: it holds only its own locks, and if one fails, those before it stay applied.
    transaction_per_migration=True,
    on_version_apply=_install_functions,
)
with context.begin_transaction():
    context.run_migrations()
