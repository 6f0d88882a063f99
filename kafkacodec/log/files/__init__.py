"""Files of this machine: mapped, written so that they appear complete, locked, read many at a time."""
