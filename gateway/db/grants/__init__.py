# SPDX-License-Identifier: Apache-2.0
"""Statements on grants and their history, and on the probes and delegations of engines."""
