"""Train against human data: `python train.py` trains a stroke generator on the embedded demo, `task=readout` a readout.

`--help` lists every task and setting.
"""

from humanlike.entry.train import main

if __name__ == "__main__":
    main()
