# SPDX-License-Identifier: Apache-2.0
"""Compilers of row filters and masks, one module for each engine or protocol. Pure.

`sql` and `masks` have the parts that all SQL dialects share. Every compiled predicate is true or false for every row,
never unknown. A compiler raises `RestrictionNotExpressible` for what its engine cannot express, so reading is refused.
"""
