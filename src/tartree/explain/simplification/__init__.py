"""Smaller and single-path models, and how far they are from the original."""
