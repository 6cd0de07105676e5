# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a pipeline, each with the exit status that tells a scheduler what to do about it."""


class PipelineError(Exception):
    """Base of everything the pipeline reports in one line instead of a traceback."""

    exit_status = 1


class ConfigError(PipelineError):
    """The configuration is missing, malformed or readable by others: nothing was started."""

    exit_status = 2


class SourceError(PipelineError):
    """A delivered file is missing or is not what its schema says."""

    exit_status = 4


class QualityError(PipelineError):
    """An expectation of severity `fail` was violated: the layer's tables were left as they were."""

    exit_status = 3


def cause_of(error: Exception) -> tuple[str, str]:
    """What lies behind a Spark error: the simple class name and message of the innermost Java exception that has one.

    An error that does not come from Java is answered as it is.
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
