"""Rules, graphs and numbers as text."""
