"""Arrow data in and out, for the rooms above: tables of the C library as capsules, and readers of any exporter."""
