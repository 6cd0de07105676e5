# SPDX-License-Identifier: Apache-2.0
"""The audit log: the chain of digests over its records, its export, and the removal of old records."""
