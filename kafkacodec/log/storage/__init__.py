"""Files of this machine and objects of stores, as they are stored, with one interface."""
