# SPDX-License-Identifier: Apache-2.0
"""Measurements: ratios to a named floor of the same run, not timed tests. Run with `make bench`."""
