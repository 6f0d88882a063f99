"""A log that is appended to and read at the same time, as a broker keeps it. It knows no protocol and no clock."""
