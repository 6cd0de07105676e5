# SPDX-License-Identifier: Apache-2.0
"""Lists of the contents of namespaces and warehouses."""
