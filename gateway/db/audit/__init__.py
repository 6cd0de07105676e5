# SPDX-License-Identifier: Apache-2.0
"""Statements on audit records, their chain of digests, and their partitions."""
