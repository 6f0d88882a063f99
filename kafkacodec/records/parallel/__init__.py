"""Decoding, encoding and scanning record sets in several threads, with the results and errors of one thread.

Internal. The functions that take `threads` import it only for more than one.
"""
