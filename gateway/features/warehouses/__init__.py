# SPDX-License-Identifier: Apache-2.0
"""Warehouses and their storage, and projects."""
