# SPDX-License-Identifier: Apache-2.0
"""Find the rows of the objects that a request names, for the door: one statement for each kind of reference."""
