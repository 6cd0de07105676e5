# SPDX-License-Identifier: Apache-2.0
"""The relationship tuples that the rows require of OpenFGA, and the outbox from which they are delivered to it."""
