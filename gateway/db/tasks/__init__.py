# SPDX-License-Identifier: Apache-2.0
"""Statements on tasks, which are background work. Any process may run a task, but only one process at a time."""
