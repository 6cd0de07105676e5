# SPDX-License-Identifier: Apache-2.0
"""Lakegate: an Iceberg REST catalog that authorizes every operation and limits each storage credential to one table."""
