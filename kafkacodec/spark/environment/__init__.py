"""Where Spark runs: its JVM, its version, a session of its own for commands."""
