"""The commands: a module for each, imported when it runs. No command imports another."""
