# SPDX-License-Identifier: Apache-2.0
"""Approval of changes by verifiers and approvers: descriptions of changes, tickets, and decisions about tickets."""
