# SPDX-License-Identifier: Apache-2.0
"""Events of committed changes: which operation announces which, their content and their schema."""
