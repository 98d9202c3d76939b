"""Every notebook as one HTML file that needs no network: python notebooks/export LAKE FOLDER.

Each file holds the outputs of the cells, their code, and the scripts that draw the charts. With
``--pictures`` the first chart of each notebook is written as SVG instead.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import os
from pathlib import Path
from string import Template

import altair as alt
import marimo
import polars as pl
import vl_convert

HERE = Path(__file__).parent
PICTURE_WIDTH = 620


def run(path: Path) -> tuple[str, list[tuple[str, object]]]:
    """Return the title of a notebook, and code and output of each of its cells."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outputs, _ = module.app.run()
    codes = [data.code for data in module.app._cell_manager.cell_data()]  # noqa: SLF001 - no other way
    return module.app._config.app_title, list(zip(codes, outputs, strict=True))  # noqa: SLF001


def render_output(output: object) -> str:
    """Return the output of a cell as HTML; fields to write in have no use here."""
    if output is None or isinstance(output, marimo.ui.text):
        return ""
    if isinstance(output, alt.Chart):
        # No text of a lake may end the script that holds it.
        spec = json.dumps(output.to_dict()).replace("<", "\\u003c")
        return f'<figure class="chart"><script type="application/json">{spec}</script></figure>'
    if isinstance(output, pl.DataFrame):
        return render_table(output)
    return f'<div class="text">{output.text}</div>'


def render_cell(value: object) -> str:
    """Return a value of a table as HTML; integers with separators of thousands."""
    return f"{value:,}" if type(value) is int else html.escape(str(value))


def render_table(frame: pl.DataFrame) -> str:
    """Return a frame as a table, with columns of integers to the right."""
    classes = [' class="number"' if kind.is_integer() else "" for kind in frame.dtypes]
    names = zip(frame.columns, classes, strict=True)
    head = "".join(f'<th scope="col"{where}>{html.escape(name)}</th>' for name, where in names)
    rows = ""
    for row in frame.rows():
        cells = zip(row, classes, strict=True)
        rows += "<tr>" + "".join(f"<td{where}>{render_cell(one)}</td>" for one, where in cells)
        rows += "</tr>"
    return f'<div class="table" tabindex="0"><table><tr>{head}</tr>{rows}</table></div>'


def render_page(path: Path) -> str:
    """Return a notebook as a page."""
    title, cells = run(path)
    outputs = (render_output(output) for _, output in cells)
    shown = "\n".join(f"<section>{output}</section>" for output in outputs if output)
    code = html.escape("\n\n".join(code.strip() for code, _ in cells))
    page = Template((HERE / "page.html").read_text(encoding="utf-8"))
    scripts = vl_convert.javascript_bundle().replace("</script", "<\\/script")
    return page.substitute(title=html.escape(title), cells=shown, code=code, scripts=scripts)


def render_picture(path: Path) -> str | None:
    """Return the first chart of a notebook as SVG; None where the lake has nothing to draw."""
    charts = [output for _, output in run(path)[1] if isinstance(output, alt.Chart)]
    if not charts:
        return None
    return vl_convert.vegalite_to_svg(charts[0].properties(width=PICTURE_WIDTH).to_dict())


def main() -> None:
    """Write a file for each notebook."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake", type=Path, help="folder of the lake")
    parser.add_argument("folder", type=Path, help="folder for the files")
    parser.add_argument("--only", help="name of one notebook, such as dex_volumes")
    parser.add_argument("--pictures", action="store_true", help="write the first chart of each")
    arguments = parser.parse_args()
    os.environ["LAKE"] = str(arguments.lake)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    render, suffix = (render_picture, "svg") if arguments.pictures else (render_page, "html")
    for path in sorted(HERE.parent.glob(f"{arguments.only or '*'}.py")):
        target = arguments.folder / f"{path.stem}.{suffix}"
        text = render(path)
        if text is not None:
            target.write_text(text, encoding="utf-8")
        print(target if text is not None else f"{path.stem}: this lake has nothing to draw")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
