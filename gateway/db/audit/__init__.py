# SPDX-License-Identifier: Apache-2.0
"""Statements on audit records, on their chain of digests, and on their partitions."""
