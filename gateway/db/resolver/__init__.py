# SPDX-License-Identifier: Apache-2.0
"""Find the rows of the objects that a request names, for its decision: one statement for each kind of reference."""
