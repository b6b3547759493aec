"""Benchmarks: measurements of how human-like a model is; run() reads like the method section of a paper."""
