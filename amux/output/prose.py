"""What people and models wrote, as HTML that can do nothing: no tag of theirs, no image, no link but to the web.

A page bears a Content-Security-Policy without `unsafe-inline`, so nothing here sets a style attribute either.
"""

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from amux.output.plain import visible

HIGHLIGHTED_LENGTH = 20_000
"""Longer code stays plain: colours cost four times its size, and some lexers are slow on hostile texts."""
ALLOWED_LINK = re.compile(r"https?://|mailto:", re.IGNORECASE)
ALIGNMENT = re.compile(r"text-align:(left|center|right)")
FORMATTER: "HtmlFormatter[str]" = HtmlFormatter(nowrap=True)

Env = Any
Options = Any


def prose(text: str, *, line_breaks: bool = False) -> str:
    """Markdown as HTML. `line_breaks`: each line end counts, as it did where the text was typed."""
    html: str = markdown_parser().render(visible(text), {"line_breaks": line_breaks})
    return visible(html)  # again: `&#x202e;` has become a character


def coloured(code: str, language: str) -> str:
    """Code as HTML; its colours are classes, `k` for a keyword and so on."""
    lexer = lexer_for(language.lower()) if language and len(code) <= HIGHLIGHTED_LENGTH else None
    return visible(highlight(code, lexer, FORMATTER) if lexer else escape(code))


@cache
def lexer_for(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


@cache
def markdown_parser() -> MarkdownIt:
    return WebLinksOnly("commonmark", {"html": False}, renderer_cls=Renderer).enable(["table", "strikethrough"])


class WebLinksOnly(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - markdown-it's name
        return ALLOWED_LINK.match(url) is not None


class Renderer(RendererHTML):
    """One method for each kind of token that markdown-it would not render as the page needs it."""

    def fence(self, tokens: Sequence[Token], idx: int, _options: Options, _env: Env) -> str:
        language, *_ = tokens[idx].info.split() or [""]
        return f"<pre><code>{coloured(tokens[idx].content, language)}</code></pre>\n"

    def code_block(self, tokens: Sequence[Token], idx: int, _options: Options, _env: Env) -> str:
        return f"<pre><code>{escape(tokens[idx].content)}</code></pre>\n"

    def image(self, tokens: Sequence[Token], idx: int, options: Options, env: Env) -> str:
        alt = self.renderInlineAsText(tokens[idx].children, options, env)
        source = tokens[idx].attrs.get("src", "")
        return f'<span class="attachment" title="{escape(str(source))}">[image: {escape(alt or str(source))}]</span>'

    def link_open(self, tokens: Sequence[Token], idx: int, options: Options, env: Env) -> str:
        tokens[idx].attrSet("rel", "noopener noreferrer")
        return self.renderToken(tokens, idx, options, env)

    def heading_open(self, tokens: Sequence[Token], idx: int, options: Options, env: Env) -> str:
        # The page's own headings are h1 and h2.
        tokens[idx].tag = f"h{min(int(tokens[idx].tag[1]) + 2, 6)}"
        return self.renderToken(tokens, idx, options, env)

    heading_close = heading_open

    def table_open(self, _tokens: Sequence[Token], _idx: int, _options: Options, _env: Env) -> str:
        return '<div class="scroll"><table>\n'

    def table_close(self, _tokens: Sequence[Token], _idx: int, _options: Options, _env: Env) -> str:
        return "</table></div>\n"

    def td_open(self, tokens: Sequence[Token], idx: int, options: Options, env: Env) -> str:
        alignment = ALIGNMENT.fullmatch(str(tokens[idx].attrs.pop("style", "")))
        if alignment:
            tokens[idx].attrSet("class", alignment[1])
        return self.renderToken(tokens, idx, options, env)

    th_open = td_open

    def softbreak(self, _tokens: Sequence[Token], _idx: int, _options: Options, env: Env) -> str:
        return "<br>\n" if env.get("line_breaks") else "\n"
