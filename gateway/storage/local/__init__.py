# SPDX-License-Identifier: Apache-2.0
"""Directories of the gateway's own machine, for development.

No credential confines a client to a table: clients open the directory themselves, with the rights of their operating
system's user. The operator allows such warehouses, and names the directories, by a setting.
"""
