"""The site: what Sphinx reads to build it, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS / "extensions")]

project = "ftrans"
author = "the authors of ftrans"
copyright = "the authors of ftrans"
html_title = "ftrans"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "code_blocks",
    "docstrings",
    "formulas",
    "page_titles",
]
exclude_patterns = ["_build", "extensions", "templates"]
templates_path = ["templates"]

# Pages are Markdown, in the repository as on the site. Names in single backticks in docstrings are links.
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
default_role = "py:obj"
# Blocks that show output of a terminal or of a Python session are highlighted as far as they parse.
suppress_warnings = ["misc.highlighting_failure"]

# Tutorials run when the site is built, each again only when it has changed.
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS / "_build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
# Progress goes there, and how long a machine took is no part of a page. Warnings are errors when the tests run pages.
nb_output_stderr = "remove"

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Inputs", "params_style"), ("Source", "notes_style"), ("Shapes", "notes_style")]
viewcode_follow_imported_members = True
viewcode_line_numbers = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
html_css_files = ["site.css"]
html_js_files = ["tables.js", "narrow.js", "navigation.js"]
html_search_scorer = str(DOCS / "search_scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "ftrans"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": True,
}
html_sidebars = {"index": [], "benchmarks": []}
