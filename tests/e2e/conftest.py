# SPDX-License-Identifier: Apache-2.0
"""The stack and its people, shared with the contract tests, for the engines that are driven against it."""

from __future__ import annotations

from tests.contract.conftest import ns, stack, world

__all__ = ["ns", "stack", "world"]
