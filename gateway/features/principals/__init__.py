# SPDX-License-Identifier: Apache-2.0
"""Users, roles, and the users and groups that identity providers manage with SCIM."""
