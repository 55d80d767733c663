"""Bounds on what events cost, one short file each; a scan of this package finds them."""
