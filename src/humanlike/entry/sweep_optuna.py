"""`hydra/sweeper=optuna`: a sweep that searches, with a study on disk that a later call goes on with.

The search itself is hydra-optuna-sweeper's. Here: what is counted (trials that ended well, over all calls), what is
tried again (trials that failed, or were at work when the search was killed), and whether a stored study is about the
same thing.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig, OmegaConf, open_dict

from humanlike.entry.launch import settings_digest


class OptunaSweeper(Sweeper):
    """Searches settings for the best `objective` with Optuna's tree-structured Parzen estimator.

    Attributes:
        settings: As in `conf/hydra/sweeper/optuna.yaml`.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings: dict[str, Any] = {
            k: OmegaConf.to_container(v) if OmegaConf.is_config(v) else v for k, v in settings.items()
        }

    def setup(self, *, hydra_context: Any, task_function: Any, config: DictConfig) -> None:
        """Remember what is searched."""
        self.about = {"hydra_context": hydra_context, "task_function": task_function, "config": config}

    def sweep(self, arguments: list[str]) -> None:
        """Run trials until `n_trials` of the study have ended well; print the best."""
        try:
            self._sweep(arguments)
        except (ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)

    def _sweep(self, arguments: list[str]) -> None:
        from filelock import FileLock, Timeout

        config = self.about["config"]
        if config.get("objective") is None:
            raise ValueError("a search needs a number to go by: objective=NAME, for example objective=inner_loss")
        storage = str(self.settings["storage"])
        _check_storage(storage)
        folder = Path(str(config.hydra.sweep.dir))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / f".{self.settings['study_name']}.lock", timeout=0):
                self._search(storage, arguments)
        except Timeout:
            raise OSError(
                f"another process searches in {folder}; trials side by side are hydra.sweeper.n_jobs of one process"
            ) from None

    def _search(self, storage: str, arguments: list[str]) -> None:
        # SQLAlchemy 1.4 warns whoever imports it of its next version, which this Optuna cannot use.
        os.environ.setdefault("SQLALCHEMY_SILENCE_UBER_WARNING", "1")
        import optuna
        from hydra_plugins.hydra_optuna_sweeper._impl import OptunaSweeperImpl

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        name = f"{self.settings['study_name']}-{self._identity(arguments)}"
        direction = str(self.settings["direction"])
        study = optuna.create_study(study_name=name, storage=storage, directions=[direction], load_if_exists=True)
        left = self._left(study)
        tried = len(study.trials)
        print(f"study {name}: {int(self.settings['n_trials']) - left} trials done, {left} to go", file=sys.stderr)
        # A sampler of the same seed would repeat its first random trials; it goes on with another one.
        seed = None if self.settings.get("seed") is None else int(self.settings["seed"]) + tried
        startup = int(self.settings.get("n_startup_trials") or 10)
        searcher = OptunaSweeperImpl(
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup),
            direction=direction,
            storage=storage,
            study_name=name,
            n_trials=left,
            n_jobs=int(self.settings.get("n_jobs") or 1),
            max_failure_rate=1.0,  # failed trials are listed at the end, as in every sweep
            search_space=None,
            custom_search_space=None,
            params=OmegaConf.create(self.settings.get("params") or {}),
        )
        searcher.setup(**self.about)
        done = [t for t in study.trials if t.state.name == "COMPLETE"]
        if left or done:
            try:
                searcher.sweep(arguments)
            except ValueError as error:
                raise ValueError(f"no trial of the study {name} ended well ({error})") from error
            self._tell(optuna.load_study(study_name=name, storage=storage))

    def _left(self, study: Any) -> int:
        """Trials that are missing to `n_trials`; those that did not end well are queued to be tried again."""
        import optuna

        done = [t.params for t in study.trials if t.state.name == "COMPLETE"]
        again: list[Mapping[str, Any]] = []
        for trial in study.trials:
            if trial.state.name == "RUNNING":  # the process that ran it is gone: this one has the lock
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            if trial.state.name in ("RUNNING", "FAIL") and trial.params not in [*done, *again]:
                again.append(trial.params)
        waiting = [t for t in study.trials if t.state.name == "WAITING"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # a queue, as later versions have it
            for params in again if not waiting else []:
                if params:
                    study.enqueue_trial(dict(params))
        return max(0, int(self.settings["n_trials"]) - len(done))

    def _identity(self, arguments: list[str]) -> str:
        """Digest of what is searched and of all that stays the same: trials of other settings are no evidence."""
        from humanlike.files import sha256_value

        fixed = self.about["config"].copy()
        with open_dict(fixed):
            del fixed["hydra"]
        searched = {"params": self.settings.get("params"), "arguments": sorted(a for a in arguments if _searches(a))}
        return sha256_value({"fixed": settings_digest(fixed), **searched, "objective": fixed.get("objective")})[:8]

    def _tell(self, study: Any) -> None:
        best = study.best_trial
        settings = " ".join(f"{key}={value}" for key, value in best.params.items())
        objective = self.about["config"].objective
        print(f"best of {len(study.trials)} trials: {objective}={best.value:.6g} with {settings}", file=sys.stderr)


def _searches(argument: str) -> bool:
    """Whether an argument of the command line is a range."""
    return argument.partition("=")[2].startswith(("choice(", "range(", "interval(", "tag(", "int("))


def _check_storage(storage: str) -> None:
    """Refuse a library that cannot work with this Optuna, before it fails with an assertion."""
    from importlib.metadata import version

    found = version("SQLAlchemy")
    if int(found.split(".")[0]) >= 2:
        raise ValueError(
            f"the storage {storage} needs SQLAlchemy<2 with this version of Optuna, found {found}: "
            "pip install 'humanlike[optuna]'"
        )
