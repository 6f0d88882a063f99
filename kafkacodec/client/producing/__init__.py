"""The decisions of a producer: queues of batches, their order and sequences, transactions. No I/O."""
