# SPDX-License-Identifier: Apache-2.0
"""Mutants of the code: their sample, and the tests that run on them."""
