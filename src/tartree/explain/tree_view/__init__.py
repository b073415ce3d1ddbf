"""A fitted tree as plain data."""
