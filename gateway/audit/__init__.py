# SPDX-License-Identifier: Apache-2.0
"""Storage of audit records.

Reads and denials go through a bounded buffer. Records that must be durable before the response use group commit.
"""
