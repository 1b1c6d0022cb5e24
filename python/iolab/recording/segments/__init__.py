"""Hot and sealed segments, and their default maps."""
