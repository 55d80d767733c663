"""When reports arrive: who is in each batch and when it closes, in virtual time. No Ray here."""
