# SPDX-License-Identifier: Apache-2.0
"""Answer questions about access: why a principal may or may not act, and the grants that would change it."""
