# SPDX-License-Identifier: Apache-2.0
"""Remote signing: a request of a client is read completely, and signed only if it concerns its table alone."""
