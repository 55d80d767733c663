"""What analysts see: the schemas of the streams, where rows go, and pictures of them."""
