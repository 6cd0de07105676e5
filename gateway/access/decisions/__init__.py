# SPDX-License-Identifier: Apache-2.0
"""Combine the results of the engines into a decision, for real and for hypothetical questions."""
