# SPDX-License-Identifier: Apache-2.0
"""The door: operations, callers, demands, the decision, and the permit as its proof."""
