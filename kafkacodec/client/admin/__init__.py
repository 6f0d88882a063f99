"""Administration: one file per subject with its requests, results and calls; `job` sends and retries requests."""
