# SPDX-License-Identifier: Apache-2.0
"""Statements on users, roles, and what identity providers keep with SCIM."""
