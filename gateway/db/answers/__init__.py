# SPDX-License-Identifier: Apache-2.0
"""Statements that read the grants behind an answer about access."""
