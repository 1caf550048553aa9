"""What YAML's parser found wrong, in words that say what to change."""

# How PyYAML says it, and what people then have to do. Source: PyYAML's scanner.py, parser.py.
WORDS = {
    "found character '\\t'": "a tab, and YAML indents by spaces alone",
    "but found '<block mapping start>'": "indented otherwise than the lines it belongs to",
    "but found '<block sequence start>'": "indented otherwise than the lines it belongs to",
    "mapping values are not allowed here": (
        "a second `: ` where one value belongs: indent it like its neighbours, or quote the text"
    ),
    "expected alphabetic or numeric character": "what begins with * or & must be quoted",
    "found undefined alias": "what begins with * must be quoted",
    "found character '%'": "what begins with % must be quoted",
    "found character '@'": "what begins with @ must be quoted",
    "found character '`'": "what begins with ` must be quoted",
    "could not find expected ':'": "a line without `: ` between a name and its value",
    "expected ',' or '}'": "a { that is not closed, or a comma that is missing",
    "expected ',' or ']'": "a [ that is not closed, or a comma that is missing",
    "found unexpected end of stream": "a quote that is not closed",
    "found duplicate anchor": "an anchor (&) that is given twice",
}


def in_words(problem: str) -> str:
    """The parser's own words where there are no better ones."""
    return next((words for start, words in WORDS.items() if start in problem), problem)
