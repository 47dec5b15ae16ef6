#!/usr/bin/env python3
"""Preprocessor of the documentation site (`mdbook build`).

- Pages outside docs (ARCHITECTURE.md and so on) fill the empty chapters of SUMMARY.md.
- Every source file that a page links to becomes a page under "Sources", so that the site needs no repository beside it.
- A link to a file, a page or a heading that does not exist is an error.
"""

import json
import os
import re
import sys

OUTSIDE = {
    "Architecture": "ARCHITECTURE.md",
    "Changelog": "CHANGELOG.md",
    "Contributing": "CONTRIBUTING.md",
    "Packages": "packaging/README.md",
}
# The README of the repository gives way to the first page, and a folder of pages to its first.
MOVED = {
    "README.md": "start-here.md",
    "docs/adr": "adr/0001-the-host-owns-the-outbox.md",
    "docs/protocols": "protocols/medley.md",
}
LANGUAGES = {".rs": "rust", ".toml": "toml", ".yaml": "yaml", ".conf": "ini"}
LINK = re.compile(r"(?P<open>\]\(|^\[[^\]]+\]: )(?P<target>[^)\s]+)", re.M)
FENCE = re.compile(r"(^[ ]*```.*?^[ ]*```[^\n]*$)", re.M | re.S)

# Paths from the repository's root, and the pages of the site that show them.
pages = {}
sources = {}
faults = []


def chapters(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            yield chapter
            yield from chapters(chapter["sub_items"])


def slug(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return "".join(c for c in text.replace(" ", "-") if c.isalnum() or c in "-_")


def anchors(text):
    prose = FENCE.sub("", text)
    headings = [slug(line.lstrip("#")) for line in prose.splitlines() if re.match("#+ ", line)]
    return set(headings) | set(re.findall(r'<a id="([^"]+)"', prose))


def page_of(path):
    """The page that shows a path of the repository; a source becomes one when it is first asked for."""
    if path in MOVED:
        return MOVED[path]
    if path in pages:
        return pages[path]
    if path.startswith("docs/") and not path.endswith(".md"):
        return path.removeprefix("docs/") if os.path.isfile(path) else pages.get(f"{path}/README.md")
    if path.startswith("docs/") or not os.path.exists(path):
        return None
    sources.setdefault(path, f"source/{path}.md")
    return sources[path]


def linked(path, page, text):
    """The text of a page with its links turned to pages of the site."""

    def turn(match):
        target, _, anchor = match["target"].partition("#")
        if ":" in target or (not target and not anchor):
            return match[0]
        to = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        place = page_of(to)
        if place is None:
            faults.append(f"{path}: no page shows {match['target']}")
            return match[0]
        if anchor and to.endswith(".md") and anchor not in anchors(open(to, encoding="utf-8").read()):
            faults.append(f"{path}: {to} has no heading or anchor `{anchor}`")
        place = os.path.relpath(place, os.path.dirname(page) or ".") if target else ""
        return match["open"] + place + ("#" + anchor if anchor else "")

    parts = FENCE.split(text)
    return "".join(part if FENCE.fullmatch(part) else LINK.sub(turn, part) for part in parts)


def source(path, page):
    if os.path.isdir(path):
        return f"# `{path}`\n\n" + "\n".join(f"- `{name}`" for name in sorted(os.listdir(path))) + "\n"
    text = open(path, encoding="utf-8").read()
    if path.endswith(".md"):
        return linked(path, page, text)
    language = LANGUAGES.get(os.path.splitext(path)[1], "text")
    return f"# `{path}`\n\n`````{language}\n{text}\n`````\n"


def chapter(name, path, content, number):
    return {
        "name": name, "content": content, "number": number, "sub_items": [],
        "path": path, "source_path": None, "parent_names": [],
    }


def main():
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    _, book = json.load(sys.stdin)
    items = book["items"] if "items" in book else book["sections"]
    known = []
    for found in chapters(items):
        path = f"docs/{found['source_path']}" if found.get("source_path") else OUTSIDE[found["name"]]
        found["path"] = found["path"] or f"source/{path}"
        found["content"] = found["content"] or open(path, encoding="utf-8").read()
        pages[path] = found["path"]
        known.append((path, found))
    for path, found in known:
        found["content"] = linked(path, found["path"], found["content"])
    shown = []
    while len(shown) < len(sources):
        path, page = list(sources.items())[len(shown)]
        shown.append(chapter(path, page, source(path, page), [len(known), len(shown)]))
    shown.sort(key=lambda found: found["name"])
    lines = [f"- [`{found['name']}`]({os.path.relpath(found['path'], 'source')})" for found in shown]
    content = "# Sources\n\nThe files that pages link to.\n\n" + "\n".join(lines)
    # Numbers are not shown; the sidebar nests and folds pages by them.
    index = chapter("Sources", "source/index.md", content, [len(known)])
    index["sub_items"] = [{"Chapter": found} for found in shown]
    items.append({"Chapter": index})
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    json.dump(book, sys.stdout)


main()
