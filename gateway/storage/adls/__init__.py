# SPDX-License-Identifier: Apache-2.0
"""Warehouses in Azure Data Lake Storage Gen2. The interfaces are in `gateway/storage/provider.py` and
`gateway/scope/profile.py`.
"""
