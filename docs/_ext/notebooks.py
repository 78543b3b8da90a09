"""Open the notebooks of a public copy in Colab and in Binder, by links beside their names in a table.

`-D repository=https://github.com/OWNER/NAME` names the copy; without it there are no links. Colab opens notebooks
of GitHub alone.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from sphinx.application import Sphinx

NOTEBOOK = re.compile(r"(?m)^\| (\[`[\w-]+\.ipynb`\]\((?:\.\./)+(notebooks/[\w/-]+\.ipynb)\))")
BRANCH = "main"


def with_links(text: str, repository: str) -> str:
    """Return the text of a page with links after the name of each notebook in a table."""
    address = urlsplit(repository.rstrip("/"))
    binder = f"https://mybinder.org/v2/git/{quote(address.geturl(), safe='')}/{BRANCH}?urlpath=lab/tree/"
    colab = f"https://colab.research.google.com/github{address.path}/blob/{BRANCH}/"

    def linked(found: re.Match[str]) -> str:
        links = [f"[Binder]({binder}{found[2]})"]
        if address.netloc == "github.com":
            links.insert(0, f"[Colab]({colab}{found[2]})")
        return f"{found[0]} ({', '.join(links)})"

    return NOTEBOOK.sub(linked, text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Change each page when it is read, if the repository is named."""
    app.add_config_value("repository", "", "env", str)

    def read(app: Sphinx, name: str, content: list[str]) -> None:
        if app.config.repository:
            content[0] = with_links(content[0], app.config.repository)

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
