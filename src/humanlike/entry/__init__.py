"""Entry points: commands, configuration, and the Python call `evaluate`. Nothing heavy is imported at module level."""
