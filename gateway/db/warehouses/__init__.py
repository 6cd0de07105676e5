# SPDX-License-Identifier: Apache-2.0
"""Statements on the server, projects, warehouses, and changes that wait for approval."""
