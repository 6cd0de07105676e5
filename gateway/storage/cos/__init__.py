# SPDX-License-Identifier: Apache-2.0
"""Warehouses in Tencent Cloud Object Storage. The interfaces are in `gateway/storage/provider.py` and
`gateway/scope/profile.py`.
"""
