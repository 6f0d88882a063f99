"""Whether batches and segments follow one another, and what their right offsets are where they do not."""
