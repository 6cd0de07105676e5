# SPDX-License-Identifier: Apache-2.0
"""Real engines against the whole stack. A package, so that what they share ends with its last test."""
