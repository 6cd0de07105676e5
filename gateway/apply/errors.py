# SPDX-License-Identifier: Apache-2.0
"""Errors about files that several modules raise."""

from __future__ import annotations


class NotChangeable(Exception):
    """The file states another value for a field that cannot change in this way."""
