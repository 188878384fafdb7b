"""Makes a program that shows something shorter, as long as it shows it."""


def block_end(lines, start):
    """The number of the line after a statement: its body is deeper."""
    depth = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    while end < len(lines) and (not lines[end].strip()
                                or len(lines[end]) - len(lines[end].lstrip()) > depth):
        end += 1
    return end


def shorter(lines, first):
    """Programs with one statement less, or with a body in place of its statement."""
    for start in range(len(lines) - 1, first - 1, -1):
        if not lines[start].strip():
            continue
        end = block_end(lines, start)
        yield lines[:start] + lines[end:]
        if end > start + 1 and not lines[start].lstrip().startswith(("def ", "class ")):
            body = [line[4:] for line in lines[start + 1:end]]
            yield lines[:start] + body + lines[end:]


def shrunk(source, shows, first=0, tries=400):
    """`shows(source)` says whether a program shows it; what does not compile is not asked about.
    Lines before the one with the number `first` stay."""
    lines = source.rstrip("\n").split("\n")
    while tries > 0:
        for candidate in shorter(lines, first):
            text = "\n".join(candidate) + "\n"
            try:
                compile(text, "shrunk", "exec")
            except SyntaxError:
                continue
            tries -= 1
            if tries > 0 and shows(text):
                lines = candidate
                break
        else:
            break
    return "\n".join(lines) + "\n"
