"""A Git repository on disk, for tests of what is pulled from one."""

import os
import subprocess

QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
NAMES = ("-c", "user.name=Alice", "-c", "user.email=alice@example.com", "-c", "commit.gpgsign=false")


class Repository:
    """A repository with the branch `main`."""

    def __init__(self, path):
        self.path = path
        path.mkdir(exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words):
        """Run a git command; its output."""
        command = ["git", "-C", str(self.path), *NAMES, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | QUIET)
        return done.stdout.strip()

    def commit(self, **files):
        """Commit everything, after writing ``files``; the id of the commit. Two underscores in a name are a slash."""
        for name, text in files.items():
            target = self.path / name.replace("__", "/").replace("_yaml", ".yaml")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=Change")
        return self.git("rev-parse", "HEAD")

    def replace(self, file, old, new):
        """Commit ``new`` in place of ``old`` in a file; the id of the commit."""
        path = self.path / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return self.commit()

    def source(self, fragment="#main"):
        """The option of `--patterns`."""
        return f"git+file://{self.path}{fragment}"
