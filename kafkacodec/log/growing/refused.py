"""Why a data directory cannot be used."""

__all__ = ["DirectoryRefused"]


class DirectoryRefused(OSError):
    """A data directory of another process, cluster, node or version.

    `strerror` says what is wrong and what to do, `filename` is the path.
    """
