"""Who is there: when clients are available and which of them take part."""
