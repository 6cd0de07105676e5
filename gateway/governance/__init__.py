# SPDX-License-Identifier: Apache-2.0
"""Use cases of management: warehouses, projects, users, roles, grants, tags, data policies, checks and explanations."""
