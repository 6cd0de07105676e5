# SPDX-License-Identifier: Apache-2.0
"""Statements on users, roles, and the users, groups and tokens of identity providers that use SCIM."""
