"""Benches: measured against named peers in one run, never asserted in the tests. `make bench`."""
