"""`--help` of the commands with a configuration: what can be chosen and set, read from conf/ itself, in a moment."""

from __future__ import annotations

import re
import textwrap

from humanlike.entry.conf import conf_dir

ENDING = """\
Choose a configuration with group=name, set anything with key=value (a setting inside a group: dataset.root=PATH).
  -m            run every combination of comma-separated values, for example -m backbone=resnet50,vgg19 seed=0,1
  --cfg job     show the composed configuration and stop
  debug=true    full tracebacks instead of one sentence
  --hydra-help  Hydra's own options

Exit status: 0 done, 1 failed, 2 wrong use, 3 finished with more losses than allowed, 130 interrupted (Ctrl-C).
"""


def help_text(config_name: str) -> str:
    """The help of a command: what it does, with examples; its groups with their options; its settings with comments.

    Args:
        config_name: `evaluate`, `train`, `study` or `extract`.
    """
    text = (conf_dir() / f"{config_name}.yaml").read_text(encoding="utf-8")
    comments, _, rest = text.partition("defaults:\n")
    defaults, _, settings = rest.partition("\n\n")
    lines = [line.removeprefix("# ") for line in comments.splitlines()]
    lines += ["", "Groups (the choice that stands when nothing is said in brackets):"]
    for group, chosen in re.findall(r"- (\w+): (\S+)", defaults):
        names = sorted(p.stem for p in (conf_dir() / group).glob("*.yaml"))
        if group == "hydra" or not names:
            continue
        standing = "" if chosen == "null" else f" [{chosen.strip('[]')}]"
        lines += textwrap.wrap(
            f"{group}{standing}: {', '.join(names)}", 100, initial_indent="  ", subsequent_indent="      "
        )
    lines += ["", "Settings:", textwrap.indent(settings.strip(), "  "), "", ENDING]
    return "\n".join(lines)
