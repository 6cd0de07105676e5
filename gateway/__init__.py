# SPDX-License-Identifier: Apache-2.0
"""Lakegate: an Iceberg REST catalog in which every operation is decided and every storage credential fits one table."""
