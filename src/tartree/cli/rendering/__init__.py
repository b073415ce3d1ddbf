"""Results and notes as text."""
