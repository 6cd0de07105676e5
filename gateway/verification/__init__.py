# SPDX-License-Identifier: Apache-2.0
"""Ask registered verifiers about a change before it is made."""
