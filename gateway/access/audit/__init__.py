# SPDX-License-Identifier: Apache-2.0
"""Audit records: their content and size, the chain of digests over them, and their formats of export."""
