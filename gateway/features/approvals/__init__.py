# SPDX-License-Identifier: Apache-2.0
"""Approval of changes by verifiers (built-in rules or external systems) and by people, who approve tickets."""
