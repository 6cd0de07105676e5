# SPDX-License-Identifier: Apache-2.0
"""S3 and compatible stores.

The builder (`session_policy`) and the evaluator (`proof`) share no code, so that the evaluator verifies the builder
independently.
"""
