"""Trees of other libraries, in and out."""
