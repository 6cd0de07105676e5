# SPDX-License-Identifier: Apache-2.0
"""Access requests: users request privileges on objects, and principals that may grant them decide."""
