# SPDX-License-Identifier: Apache-2.0
"""Spell the ancestors in the paths of namespaces as the ancestors are spelled.

Earlier versions stored the path in the spelling of the request that created the namespace.
"""

from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        update namespaces n set levels = spelled.levels
        from (
            select below.id,
                array_agg(above.levels[cardinality(above.levels)] order by path.depth)
                    || below.levels[cardinality(below.levels)] as levels
            from namespaces below
                cross join lateral unnest(below.ancestors) with ordinality as path(id, depth)
                join namespaces above on above.id = path.id
            group by below.id
        ) spelled
        where spelled.id = n.id and spelled.levels <> n.levels and cardinality(spelled.levels) = cardinality(n.levels)
        """
    )
