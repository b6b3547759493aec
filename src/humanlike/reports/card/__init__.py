"""The report card: runs of several benchmarks on one page, compared only where they can be compared."""
