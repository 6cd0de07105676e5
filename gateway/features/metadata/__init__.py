# SPDX-License-Identifier: Apache-2.0
"""Metadata files and their validation, and what a load of them returns to a caller."""
