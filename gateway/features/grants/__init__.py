# SPDX-License-Identifier: Apache-2.0
"""Grants, checks of permissions, and managed access, which removes the right to grant from owners of objects."""
