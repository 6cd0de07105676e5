# SPDX-License-Identifier: Apache-2.0
"""Alembic migrations, one file for each revision of the schema."""
