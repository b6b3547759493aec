"""Train against human data: `python train.py` trains a readout on the embedded demo; `--help` lists every setting."""

from humanlike.entry.train import main

if __name__ == "__main__":
    main()
