# SPDX-License-Identifier: Apache-2.0
"""Statements on tasks: background work that any process may run, but only one at a time."""
