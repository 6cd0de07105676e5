# SPDX-License-Identifier: Apache-2.0
"""The outbox, and the relationship tuples that the rows require: their computation, delivery and reading."""
