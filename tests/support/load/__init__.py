# SPDX-License-Identifier: Apache-2.0
"""Concurrent clients, killed processes, and the comparison of what they left."""
