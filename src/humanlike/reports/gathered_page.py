"""What every page of gathered runs says, whatever their benchmark (`templates/gathered.html.j2`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from humanlike.files import json_ready
from humanlike.reports import wording
from humanlike.reports.html import leaves


def page_record(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """What a page of gathered runs says of its record and files: `record, files, counts, details, bibtex`."""
    return {
        "record": record,
        "files": [(name, wording.count_text(len(table))) for name, table in tables.items()],
        "counts": [(wording.title(k), wording.count_text(v)) for k, v in (record.get("counts") or {}).items()],
        "details": [
            (wording.title(k), leaves(json_ready(record[k]))) for k in ("seeds", "versions", "runs") if record.get(k)
        ],
        "bibtex": str(record.get("bibtex") or ""),
    }
