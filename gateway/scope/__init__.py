# SPDX-License-Identifier: Apache-2.0
"""What a credential may reach, as pure values: locations, storage profiles, session policies and their proof.

Nothing here opens a socket or reads the clock. The builder (`session_policy`) and the evaluator (`proof`) share no
code on purpose: the second is the witness against the first.
"""
