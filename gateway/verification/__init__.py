# SPDX-License-Identifier: Apache-2.0
"""Query registered verifiers, which approve or reject a change before it is made."""
