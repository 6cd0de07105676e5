# SPDX-License-Identifier: Apache-2.0
"""Pools of database connections, reads that are compiled once or shared by requests, and hooks around statements."""
