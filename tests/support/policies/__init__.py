# SPDX-License-Identifier: Apache-2.0
"""Random and reference policies, and the comparison of engines with them."""
