# SPDX-License-Identifier: Apache-2.0
"""The chain over audit records, its export, and the retention of the records."""
