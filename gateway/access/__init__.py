# SPDX-License-Identifier: Apache-2.0
"""Define operations and the relations that they demand, decide with OpenFGA and OPA, and mint permits.

A permit is the proof of a decision. Every use case requires one as its first parameter.
"""
