# SPDX-License-Identifier: Apache-2.0
"""Decide every operation with both engines, write its audit record, and mint its permit."""
