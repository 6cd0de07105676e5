# SPDX-License-Identifier: Apache-2.0
"""Drops of tables and views, drop protection, soft deletion, and the deletion of files."""
