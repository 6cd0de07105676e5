# SPDX-License-Identifier: Apache-2.0
"""Local directories on the gateway's machine as storage, for development.

No credential confines a client to a table: clients open the directory themselves, with the rights of their operating
system user. A setting of the operator allows such warehouses and lists the directories.
"""
