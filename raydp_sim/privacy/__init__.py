"""What an observer can learn: events, guarantees and the ledger that adds them up."""
