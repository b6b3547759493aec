"""`python -m humanlike`: the same as the `humanlike` command."""

from humanlike.entry.cli import main

if __name__ == "__main__":
    main()
