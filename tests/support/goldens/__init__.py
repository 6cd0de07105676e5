# SPDX-License-Identifier: Apache-2.0
"""The texts of golden files, rendered from the source and the running code."""
