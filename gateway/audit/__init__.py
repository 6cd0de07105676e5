# SPDX-License-Identifier: Apache-2.0
"""Storage of audit records: a bounded buffer for reads and denials, and group commit for records that must be durable
before the response.
"""
