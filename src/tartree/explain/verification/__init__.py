"""Interval arithmetic over boxes of rows, and certificates proven with it."""
