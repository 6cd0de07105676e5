# SPDX-License-Identifier: Apache-2.0
"""Answers about access: the principals that may take an action, and what a principal may do, with the reasons."""
