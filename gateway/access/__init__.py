# SPDX-License-Identifier: Apache-2.0
"""Define operations, callers and demands, decide with OpenFGA and OPA, and mint permits as proof of a decision."""
