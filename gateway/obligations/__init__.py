# SPDX-License-Identifier: Apache-2.0
"""What is owed for an answer: which columns somebody may read, and how an engine is told to hold back the others.

Pure. Row filters and masks by tag will be further sources of the same projections; `merge.strictest` is where they
meet.
"""
