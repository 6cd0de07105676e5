# SPDX-License-Identifier: Apache-2.0
"""Build values and components that tests share."""
