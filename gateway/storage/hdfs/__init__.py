# SPDX-License-Identifier: Apache-2.0
"""HDFS as storage, for engines that authenticate to it themselves.

No credential confines a client to a table: clients open the files with their own identity, and the name node decides.
The gateway uses its own identity for metadata files and purges. A setting of the operator allows such warehouses and
lists the directories.
"""
