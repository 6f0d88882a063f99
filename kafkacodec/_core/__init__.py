"""What all bindings share: the C library as Cython sees it, a folder of csrc a file; buffers; errors."""
