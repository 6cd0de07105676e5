# SPDX-License-Identifier: Apache-2.0
"""Query registered verifiers about a change before it is made."""
