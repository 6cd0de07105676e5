# SPDX-License-Identifier: Apache-2.0
"""Tools for the console: vendored libraries and their checks."""
