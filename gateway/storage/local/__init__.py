# SPDX-License-Identifier: Apache-2.0
"""Local directories on the gateway's machine as storage, for development.

The gateway vends no credentials: clients open the directory themselves, with the rights of their operating system user.
Such warehouses are possible only in directories that the operator lists.
"""
