# SPDX-License-Identifier: Apache-2.0
"""Keeping audit records: a bounded buffer for reads and refusals, group commit for what must be durable before
an answer.
"""
