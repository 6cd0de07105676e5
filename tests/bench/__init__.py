# SPDX-License-Identifier: Apache-2.0
"""Measurements: ratios of one run, ours against a named floor, never a timed test. Run with `make bench`."""
