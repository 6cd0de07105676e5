# SPDX-License-Identifier: Apache-2.0
"""S3 and compatible stores.

The builder (`session_policy`) and the evaluator (`proof`) share no code on purpose: the second is the witness against
the first.
"""
