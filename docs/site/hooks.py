"""What the site has besides docs/*.md: the commands, the notebooks, and links that lead outside.

mkdocs calls the `on_` functions (mkdocs.yml names this file).
"""

import base64
import json
import posixpath
import re
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from archfit.cli.app import program

COMMANDS_PAGE = "reference/commands.md"
NOTEBOOKS = "notebooks"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+)\)")
NOTEBOOK = re.compile(r"(notebooks/[\w-]+)\.ipynb\)")  # in the repository; here it is a page
MARKS = re.compile(r"<!-- /?session.*?-->\n?")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of all commands and one page for each notebook."""
    files.append(File.generated(config, COMMANDS_PAGE, content=commands_page()))
    for notebook in sorted((Path(config.docs_dir) / NOTEBOOKS).glob("*.ipynb")):
        page = f"{NOTEBOOKS}/{notebook.stem}.md"
        files.append(File.generated(config, page, content=notebook_page(notebook)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Say a folder, or a file that is not on the site, by its path in the repository."""
    here = posixpath.join("docs", posixpath.dirname(page.file.src_uri))
    root = Path(config.docs_dir).parent

    def said(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(here, found[2]))
        is_there = (root / path).exists()
        on_site = files.get_file_from_path(path.removeprefix("docs/")) is not None
        return f"{found[1]} (`{path}`)" if is_there and not on_site else found[0]

    return MARKS.sub("", LINK.sub(said, NOTEBOOK.sub(r"\1.md)", markdown)))


def on_post_page(output: str, **_: object) -> str:
    """Give the theme's search a name that a screen reader can say."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def commands_page() -> str:
    """Every command with its arguments, options and examples, as `--help` has them."""
    root = typer.main.get_command(program([]))
    parts = [
        "# Commands",
        "Made from the program itself when this site is built; `archfit COMMAND --help` says the "
        "same. Sizes may be written 125M, 1.3B or 2e7. Every command answers in at most 12 lines; "
        "`--why` prints the rest, `--quiet` the first sentence only, `--json` one document for "
        "programs. Bad input gives one sentence and exit status 2.",
    ]
    for name, command in _leaves(root, "archfit"):
        parts += _command_parts(name, command)
    return "\n\n".join(parts) + "\n"


def _leaves(command: Any, name: str) -> list[tuple[str, Any]]:
    """The commands under this one, with the words that call them."""
    below = getattr(command, "commands", None)
    if below is None:
        return [(name, command)]
    words = command.list_commands(None)  # in the order of --help
    return [leaf for word in words for leaf in _leaves(below[word], f"{name} {word}")]


def _command_parts(name: str, command: Any) -> list[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    panels: dict[str, list[str]] = {}
    for option in command.get_params(context):
        if getattr(option, "hidden", False) or option.name == "help":
            continue
        panel = getattr(option, "rich_help_panel", None) or "General"
        panels.setdefault(panel, []).append(_option_row(option, context))
    rows = [
        f"| **{panel}** | |\n" + "\n".join(lines)
        for panel, lines in sorted(panels.items(), key=_last)
    ]
    table = "\n".join(["| option | what it says |", "| --- | --- |", *rows])
    examples = [line.strip() for line in (command.epilog or "").splitlines()[1:] if line.strip()]
    shown = ["```console\n" + "\n".join(f"$ {line}" for line in examples) + "\n```"]
    return [f"## {name}", command.help or "", *(shown if examples else []), table]


def _last(panel: tuple[str, list[str]]) -> bool:
    return panel[0] == "Answer"  # the three options that all commands have


def _option_row(option: Any, context: Any) -> str:
    called, told = option.get_help_record(context)
    cells = (" ".join(called.split()), " ".join(told.split()))
    named, said = (cell.replace("|", "\\|").replace("<bool>", "").strip() for cell in cells)
    said = said.replace("<", "&lt;").replace("[", "\\[")
    return f"| `{named}` | {said} |"


def notebook_page(file: Path) -> str:
    """A notebook as a page: its text, its code, and what the code printed or drew."""
    notebook = json.loads(file.read_text(encoding="utf-8"))
    parts = [_cell(cell) for cell in notebook["cells"]]
    end = f"Download: [{file.name}]({file.name}). It runs as it stands."
    return "\n\n".join([*parts, end]) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    shown = [_output(output) for output in cell["outputs"]]
    return "\n\n".join([f"```python\n{source}\n```", *filter(None, shown)])


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="answer">{"".join(data["text/html"])}</div>'
    if "image/svg+xml" in data:
        coded = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f'<img alt="What this code draws" src="data:image/svg+xml;base64,{coded}">'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text else ""
