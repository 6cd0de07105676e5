# SPDX-License-Identifier: Apache-2.0
"""Users and objects of a running stack, through the API."""
