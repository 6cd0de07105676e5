# SPDX-License-Identifier: Apache-2.0
"""Connections and reads: pools of driver connections, compiled and shared reads, and hooks around statements."""
