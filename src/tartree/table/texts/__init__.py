"""Numbers and dates written as text: how the texts of a column are read, decided from all of them."""
