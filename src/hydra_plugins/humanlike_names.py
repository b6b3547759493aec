"""Lets this project's `conf/hydra/launcher/joblib.yaml` and the like stand for themselves.

Other plugins of Hydra (hydra-joblib-launcher, hydra-submitit-launcher, hydra-ray-launcher) register schemas under the
same names, and Hydra holds every file against the schema of its name. Where the main folder of configuration files is
this project's, and only there, those schemas are taken out before anything is composed.
"""

from __future__ import annotations

from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.plugins.search_path_plugin import SearchPathPlugin

GROUPS = ("launcher", "sweeper")


class OwnNames(SearchPathPlugin):
    """Hydra asks it about the search path at every start, after all plugins have registered."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Leave the search path as it is; drop foreign schemas of names that the project's files have."""
        from humanlike.entry.conf import conf_dir

        mains = [item.path or "" for item in search_path.get_path() if item.provider == "main"]
        own = conf_dir()
        if not any(Path(path.removeprefix("file://")) == own for path in mains):
            return
        registered = ConfigStore.instance().repo.get("hydra", {})
        for group in GROUPS:
            for file in (own / "hydra" / group).glob("*.yaml"):
                registered.get(group, {}).pop(file.name, None)
