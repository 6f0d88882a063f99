"""Why a data directory cannot be used."""

__all__ = ["DirectoryRefused"]


class DirectoryRefused(OSError):
    """A data directory that another process has, or that is of another cluster, node or version.

    `strerror` says what is wrong and what to do, `filename` is the path.
    """
