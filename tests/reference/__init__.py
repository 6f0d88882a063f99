"""A second reading of the formats: small, slow and plain, to hold the core against. Nothing of the package is used."""
