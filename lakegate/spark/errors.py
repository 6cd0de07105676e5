# SPDX-License-Identifier: Apache-2.0
"""Errors of the pipeline. Each has an exit status that tells a scheduler the kind of fault."""


class PipelineError(Exception):
    """Base class of the errors that the pipeline reports in one line, without a traceback."""

    exit_status = 1


class ConfigError(PipelineError):
    """The configuration is missing, invalid, or readable by other accounts. Nothing was started."""

    exit_status = 2


class SourceError(PipelineError):
    """A delivered file or the default delivery is missing, or an archive does not contain exactly one CSV file."""

    exit_status = 4


class QualityError(PipelineError):
    """An expectation of severity `fail` was violated. The tables of the layer were not changed."""

    exit_status = 3


class RestrictionsRefused(PipelineError):
    """The restrictions of a table cannot be applied in full, so no row was read."""

    exit_status = 5


class GovernedReadRefused(PipelineError):
    """The gateway refused a governed read, or the read is not permitted here. The message names the remedy."""

    exit_status = 6


class RequestRefused(GovernedReadRefused):
    """The gateway answered a request with an error. `kind` is the type of the error, empty if the response has none."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class ReaderLostAccess(PipelineError):
    """The user or role of a governed copy may no longer read the source. The message tells whether the copy is
    empty.
    """

    exit_status = 7


def cause_of(error: Exception) -> tuple[str, str]:
    """Return (simple class name, message) of the innermost Java exception that has a message.

    If no Java exception has a message, the class is that of the innermost one, and the message is empty. If the error
    does not come from Java, the result is its own class name and message.
    """
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if origin is None:
        return type(error).__name__, str(error)
    chain = []
    while origin is not None:
        chain.append((str(origin.getClass().getSimpleName()), origin.getMessage()))
        origin = origin.getCause()
    spoken = [(name, str(message)) for name, message in chain if message]
    return spoken[-1] if spoken else (chain[-1][0], "")
