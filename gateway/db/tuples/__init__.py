# SPDX-License-Identifier: Apache-2.0
"""The outbox, and the relationship tuples that the rows require: computing, delivering and reading them."""
