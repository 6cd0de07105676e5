# SPDX-License-Identifier: Apache-2.0
"""Statements behind the answers to questions about access: the facts of a decision, with the grants behind them."""
