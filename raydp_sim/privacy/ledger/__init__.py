"""Who was charged for what: accounts of clients, their budgets, and the ledger on disk."""
