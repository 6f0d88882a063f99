"""A broker's log, appended to and read at the same time. It depends on no protocol and no clock."""
