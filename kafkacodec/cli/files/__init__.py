"""The files that commands read rows from and write rows to."""
