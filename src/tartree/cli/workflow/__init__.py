"""From a table to a model, and from a model to results: the work of the commands between input and output."""
