"""Tables that tools write into pages of docs/."""


def write_between(page, name, lines):
    """Replaces what stands between `<!-- name -->` and `<!-- end of name -->` in a page."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, found, rest = page.read_text().partition(begin)
    old, found_end, tail = rest.partition(end)
    if not found or not found_end:
        raise SystemExit(f"{page.name} has no place for a table: {begin} ... {end}")
    page.write_text("\n".join([head + begin, *lines, end + tail]))
