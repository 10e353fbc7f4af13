"""Settings of the documentation site; `make docs` builds it, without a network."""

import os
import re
import warnings
from functools import partial
from importlib.resources import files

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

os.environ["MPLBACKEND"] = "Agg"
from isodus import __version__

project = "isodus"
author = "The isodus developers"
copyright = "The isodus developers, BSD 3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*", "images/*", "paper/*", "README.md"]
default_role = "py:obj"  # `ISODUS` in a docstring is a link, where there is a page for it
templates_path = ["_templates"]
nitpicky = False

# pages: Markdown, mathematics between dollars
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = False

# the reference: from docstrings
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_score_request, get_metadata_routing, get_params, set_params"
}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# the gallery: scripts that are run when the site is built
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
}
warnings.filterwarnings("ignore", message=".*is non-interactive.*")

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "isodus"
html_static_path = ["_static", str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "isodus"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
}
html_sidebars = {"index": []}
copybutton_exclude = ".linenos, .gp, .go"


# Mathematics as MathML: every current browser shows it, without a script. The font is that of the package ziamath,
# since not every machine has one for mathematics.
def _equation(self, node, block):
    self.body.append(tex2mathml(node.astext(), as_block=block))
    raise SkipNode


# Docstrings of isodus are plain text with numpydoc's sections: formulas are indented, |x| and x* mean themselves, and
# small functions list their arguments as "name: what it is". Made reStructuredText here.

_ARGUMENT = re.compile(r"(?P<names>[a-zA-Z_]\w*(, [a-zA-Z_]\w*)*): (?P<text>\S.*)$")
_SECTION = re.compile(r"\s*-{3,}\s*$")
_CODE = re.compile(r"(``.+?``|`[^`]+`)")


def _plain(text):
    """Escape what reStructuredText would take for markup, outside of backticks."""
    parts = _CODE.split(text)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"([|*])", r"\\\1", parts[k])
        parts[k] = re.sub(r"(?<=\w)_(?=[^\w(]|$)", r"\\_", parts[k])
    return "".join(parts)


def _formula(lines, k, end, out):
    """An indented block, as it is; the line after it."""
    if not (len(out) > 1 and out[-2].endswith("::")):
        out += [".. code-block:: none", ""]
    while k < end and (lines[k].startswith("    ") or not lines[k].strip()):
        out.append(lines[k])
        k += 1
    return k


def _arguments(lines, k, end, out):
    """A list of arguments; the line after it."""
    while k < end and (found := _ARGUMENT.match(lines[k])):
        text = [found["text"]]
        k += 1
        while k < end and lines[k].strip() and not _ARGUMENT.match(lines[k]):
            text.append(lines[k].strip())
            k += 1
        names = ", ".join(f"**{name}**" for name in found["names"].split(", "))
        out.append(f"- {names}: {_plain(' '.join(text))}")
    out.append("")
    return k


def _session(lines, k, end, out):
    """An interactive session, as it is; the line after it."""
    while k < end and lines[k].strip():
        out.append(lines[k])
        k += 1
    return k


def _readable(app, what, name, obj, options, lines):
    if not name.startswith("isodus"):
        return
    sections = next((k for k, line in enumerate(lines[1:]) if _SECTION.match(line)), len(lines))
    out, k = [], 0
    while k < sections:
        line, opening = lines[k], k > 0 and not lines[k - 1].strip()
        if opening and line.startswith("    "):
            k = _formula(lines, k, sections, out)
        elif line.startswith(">>>"):
            k = _session(lines, k, sections, out)
        elif opening and _ARGUMENT.match(line):
            k = _arguments(lines, k, sections, out)
        else:
            out.append(_plain(line))
            k += 1
    code = False
    for line in lines[sections:]:
        code = bool(line.strip()) and (code or line.lstrip().startswith(">>>"))
        heading = _SECTION.match(line) or re.match(r"[\w, *]+( :.*)?$", line)
        out.append(line if code or heading else _plain(line))
    lines[:] = out


def _rendered(app, docname, source):
    """Links to scripts of the gallery, which are in the repository, lead to their pages on the site."""
    text = re.sub(r"\]\(gallery/(plot_\w+)\.py\)", r"](auto_gallery/\1.rst)", source[0])
    source[0] = text.replace("](gallery/GALLERY_HEADER.rst)", "](auto_gallery/index.rst)")


def setup(app):
    """Connect them."""
    inline, block = partial(_equation, block=False), partial(_equation, block=True)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("autodoc-process-docstring", _readable, priority=100)
    app.connect("source-read", _rendered)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
