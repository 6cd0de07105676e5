# SPDX-License-Identifier: Apache-2.0
"""Statements on data policies, mapping tables and tags."""
