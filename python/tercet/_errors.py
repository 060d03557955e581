"""Exceptions of Tercet.

Every exception names the file and, where the problem has a place in it, the byte range.
"""

from __future__ import annotations


class Error(Exception):
    """The base class of all errors of Tercet.

    Attributes:
        file: The path or URL of the file, or an empty string.
        span: The first byte and the end of the bytes that caused the error, or None.
        region: The part of the file that is malformed or damaged, or None.
        field: The field of the region that is malformed, as the specification names it, or None.
    """

    file: str
    span: tuple[int, int] | None
    region: str | None
    field: str | None

    def __init__(
        self,
        message: str,
        file: str = "",
        span: tuple[int, int] | None = None,
        region: str | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.span = span
        self.region = region
        self.field = field

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.file, self.span, self.region, self.field)


class CorruptError(Error):
    """A checksum or a decoder reports damaged bytes."""


class MalformedError(Error):
    """The bytes violate the format."""


class LimitError(Error):
    """A declared size exceeds a limit."""


class UnsupportedError(Error):
    """The file is valid but needs a feature that this build does not have."""


class RequestError(Error, ValueError):
    """Invalid request: an unknown name, a selection out of range."""


class UnknownNameError(Error, KeyError):
    """There is no dataset, object or column of this name."""

    def __str__(self) -> str:
        return str(self.args[0])


class TercetOSError(Error, OSError):
    """An I/O error: permission, full disk, network."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotFoundError(TercetOSError, FileNotFoundError):
    """The file does not exist."""


class ExistsError(TercetOSError, RequestError, FileExistsError):
    """The file exists already, and `overwrite` is not set."""


class Cancelled(Error):
    """The operation was interrupted."""


_CLASSES = {
    cls.__name__: cls
    for cls in (
        CorruptError,
        MalformedError,
        LimitError,
        UnsupportedError,
        RequestError,
        UnknownNameError,
        TercetOSError,
        NotFoundError,
        ExistsError,
        Cancelled,
    )
}


def make(
    name: str,
    message: str,
    file: str,
    span: tuple[int, int] | None,
    site: tuple[str, str | None] | None = None,
) -> Error:
    """Creates the exception of a class. The native module calls it."""
    region, field = (None, None) if site is None else site
    return _CLASSES.get(name, Error)(message, file, span, region, field)
