# SPDX-License-Identifier: Apache-2.0
"""The chain of digests over audit records, its export, and the removal of old records."""
