"""How far people agree with SEA, or with any score of sketches: rankings, ratings and acceptances held against scores.

```python
from humanlike.benchmarks.human_agreement import human_agreement, read_survey_responses

responses = read_survey_responses(["answers/"])
found = human_agreement(responses, items.set_index("sketch_id")[["sea", "recognition"]])
found.value("sea", "accepted")
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from humanlike.benchmarks.human_agreement_acceptance import acceptance_agreement
from humanlike.benchmarks.human_agreement_ranking import ranking_agreement
from humanlike.benchmarks.human_agreement_rating import rating_agreement
from humanlike.benchmarks.human_agreement_result import DEFAULTS, AgreementSettings, HumanAgreement
from humanlike.data.survey_responses import SurveyResponses, read_survey_responses

__all__ = [
    "PUBLISHED_AGREEMENT",
    "AgreementSettings",
    "HumanAgreement",
    "SurveyResponses",
    "acceptance_agreement",
    "human_agreement",
    "ranking_agreement",
    "rating_agreement",
    "read_survey_responses",
]

PUBLISHED_AGREEMENT: Mapping[str, float] = {"closed models": 0.878, "open models": 0.880}
"""Share of 27 people's judgments of 160 triples that accept SEA's order, as published (SEA, CVPR 2026).

They were, as far as is known, shown that order, as in an acceptance here; `accepted` of a ranking is of orders that
people gave unprompted, which is harder.
"""

_KINDS: Mapping[str, Callable[[SurveyResponses, pd.DataFrame, AgreementSettings], HumanAgreement]] = {
    "ranking": ranking_agreement,
    "rating": rating_agreement,
    "acceptance": acceptance_agreement,
}


def human_agreement(
    responses: SurveyResponses, scores: pd.DataFrame, settings: AgreementSettings = DEFAULTS
) -> HumanAgreement:
    """Hold scores against people's judgments, of any kind.

    Args:
        responses: What people answered; see `read_survey_responses`.
        scores: Index sketch id, a column a score ("sea", "recognition", or one of each of several runs).
        settings: How intervals are made.

    Returns:
        See `ranking_agreement`, `rating_agreement` and `acceptance_agreement`.

    Raises:
        ValueError: When there is no score, a judged sketch has none of them, or judgments contradict each other.
    """
    if scores.shape[1] == 0:
        raise ValueError("there is no score to hold against people; name a column, such as sea")
    return _KINDS[responses.kind](responses, scores, settings)
