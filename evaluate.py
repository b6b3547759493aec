"""Score a vision model against people: `python evaluate.py` runs the embedded demo; `--help` lists every setting."""

from humanlike.entry.evaluate import main

if __name__ == "__main__":
    main()
