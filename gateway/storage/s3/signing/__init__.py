# SPDX-License-Identifier: Apache-2.0
"""Remote signing: a client's request is parsed completely, and signed only if it concerns nothing but its table."""
