"""Runs on a cluster that is elsewhere: handed in, followed and brought back over Ray's job API."""
