# SPDX-License-Identifier: Apache-2.0
"""Statements on namespaces, tables, views and generic tables, their metadata documents and locations."""
