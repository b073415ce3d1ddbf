"""Why the model predicts what it predicts: contributions, gradients, paths and importances."""
