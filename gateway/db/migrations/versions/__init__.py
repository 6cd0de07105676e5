# SPDX-License-Identifier: Apache-2.0
"""Alembic migrations; each version of the schema is one file."""
