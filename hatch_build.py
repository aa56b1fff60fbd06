"""Build hook: write the commit of a wheel into it, so that `archfit --version` can say."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface[Any]):
    """Adds `archfit/resources/commit.txt` to a wheel; editable installs ask git instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the commit to a temporary file and have the wheel include it."""
        if version == "editable":
            return
        try:
            asked = subprocess.run(
                ["git", "rev-parse", "HEAD"], cwd=self.root, capture_output=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):  # a source archive, or no git here
            return
        self._folder = tempfile.TemporaryDirectory()  # removed with this hook
        file = Path(self._folder.name) / "commit.txt"
        file.write_bytes(asked.stdout)
        build_data["force_include"][str(file)] = "archfit/resources/commit.txt"
