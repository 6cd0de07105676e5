# SPDX-License-Identifier: Apache-2.0
"""Connections and reads: pools of the driver, compiled and shared reads, and hooks around statements."""
