"""The names and formats of the files of a log directory: bytes and values, without reading files."""
