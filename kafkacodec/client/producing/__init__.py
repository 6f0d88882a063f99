"""What a producer decides: queues of batches, their order and sequences, transactions. No I/O."""
