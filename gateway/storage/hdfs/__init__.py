# SPDX-License-Identifier: Apache-2.0
"""HDFS as storage, for engines that authenticate to HDFS themselves.

The gateway vends no credentials: clients open the files with their own identity, and the name node decides. The gateway
uses its own identity for metadata files and for the deletion of a table's files. Such warehouses are possible only in
directories that the operator lists.
"""
