# SPDX-License-Identifier: Apache-2.0
"""Metadata files: writes, validation, and the part of them that a load returns to a caller."""
