"""What travels from clients to readers, and how it is permuted on the way."""
