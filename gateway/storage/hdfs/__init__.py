# SPDX-License-Identifier: Apache-2.0
"""HDFS as storage, for engines that authenticate to it themselves.

The gateway vends no credentials: clients open the files with their own identity, and the name node decides. The gateway
uses its own identity for metadata files and purges. Such warehouses are possible only in directories that the operator
lists.
"""
