# SPDX-License-Identifier: Apache-2.0
"""End the trust that posted outputs of engines gave: 30 days remain, with a warning, for a probe by the gateway."""

from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        update engine_probes set
            verdict = null, valid_until = null, detail = null, probed_at = null,
            warn_until = greatest(warn_until, clock_timestamp() + interval '30 days')
        where verdict = 'passed' and valid_until > clock_timestamp()
        """
    )
