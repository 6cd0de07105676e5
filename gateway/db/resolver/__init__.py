# SPDX-License-Identifier: Apache-2.0
"""Resolve references to rows for the door: one statement on the primary for each kind of reference."""
