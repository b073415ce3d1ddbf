"""The smallest change of a row that changes its prediction."""
