"""The tables of bench/infer.py, whose rows fit into 100 columns."""
import re
import statistics

OURS = ("cfx", "oneDNN")


def table(heads, rows):
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def number(x):
    """Three digits or four, no more than three of them after the point; thousands from 10k on."""
    if x >= 9999.5:
        return f"{x / 1000:.0f}k"
    return f"{x:.{0 if x >= 100 else 1 if x >= 10 else 2 if x >= 1 else 3}f}"


def cell_of(found, show):
    """An engine's entry: a number, "-" if it is not there, "fails"."""
    if "time" in found:
        return show(found)
    return "fails" if "failed" in found else "-"


def times_of(cell, engines):
    return {e: cell["engines"][e]["time"] for e in engines
            if "time" in cell["engines"].get(e, {})}  # fmt: skip


def best(cell, ours):
    """(engine, seconds) of the fastest of ours or of the others; None if there is none."""
    chosen = [e for e in cell["engines"] if (e in OURS) == ours]
    times = times_of(cell, chosen)
    return min(times.items(), key=lambda item: item[1]) if times else None


def title_of(threads, batch):
    return f"{threads} thread{'s' if threads > 1 else ''}, batch {batch}"


def groups(results):
    """The cells by (threads, batch), in order."""
    found = {}
    for cell in results["cells"]:
        found.setdefault((cell["threads"], cell["batch"]), []).append(cell)
    return found


def by_model(cells, titles, show):
    engines = list(cells[0]["engines"])
    rows = [[titles[c["model"]]] + [cell_of(c["engines"][e], show) for e in engines]
            for c in cells]  # fmt: skip
    return table(["model", *engines], rows)


def shown_time(found):
    return f"{number(found['time'] * 1e3)} ±{found['spread'] * 100:.0f}%"


# ---- cfx beside the best other engine -----------------------------------------------------------


def shown_ratio(cell, peak):
    other, our = best(cell, False), best(cell, True)
    return f"{other[1] / our[1]:.2f}x {other[0]}" if other and our else "-"


def shown_share(cell, peak):
    """Of the best other engine and of ours."""
    found = [best(cell, ours) for ours in (False, True)]
    return ", ".join(f"{cell['facts']['flops'] / one[1] / peak / 1e9 * 100:.0f}%"
                     if one and peak else "-" for one in found)  # fmt: skip


def by_cell(results, titles, show):
    """A column for each number of threads and batch size."""
    every = groups(results)
    rows = []
    for model in dict.fromkeys(c["model"] for c in results["cells"]):
        row = [titles[model]]
        for key, cells in every.items():
            mine = [c for c in cells if c["model"] == model]
            row.append(show(mine[0], results["peaks"].get(str(key[0]))) if mine else "-")
        rows.append(row)
    return table(["model", *(title_of(*key) for key in every)], rows)


def means(results):
    """Geometric means over the models, of the best other engine's time over each one's."""
    rows = []
    for key, cells in groups(results).items():
        row = [title_of(*key)]
        for engine in cells[0]["engines"]:
            found = [best(c, False)[1] / t for c in cells
                     for t in times_of(c, [engine]).values() if best(c, False)]
            some = f" ({len(found)})" if len(found) < len(cells) else ""
            row.append(f"{statistics.geometric_mean(found):.2f}x{some}" if found else "-")
        rows.append(row)
    return table(["", *results["cells"][0]["engines"]], rows)


def problems(results, titles):
    """What is missing, and what fails: one line for each."""
    found = {}
    for cell in results["cells"]:
        for engine, about in cell["engines"].items():
            for kind in ("missing", "failed"):
                if kind in about:
                    found.setdefault(f"{engine} {kind}: {about[kind]}", []).append(
                        titles[cell["model"]])
    return "\n".join(f"- {', '.join(dict.fromkeys(where))}: {what}"
                     for what, where in found.items())


# ---- all ----------------------------------------------------------------------------------------


def versions(results):
    every = {about["how"] for cell in results["cells"] for about in cell["engines"].values()
             if "how" in about}  # fmt: skip
    writers = {cell["facts"]["onnx"] for cell in results["cells"]}
    return f"{', '.join(sorted(every))}. ONNX files are written by {' and '.join(sorted(writers))}."


def report(results, titles):
    parts = [versions(results)]
    for key, cells in groups(results).items():
        parts += [f"{title_of(*key)}: milliseconds, medians of {results['rounds']} rounds, and "
                  "half of the distance between the quartiles:",
                  by_model(cells, titles, shown_time)]
    peaks = ", ".join(f"{p:.0f} GFLOP/s with {n}" for n, p in results["peaks"].items())
    parts += ["The time of the best other engine divided by that of cfx (the better of its two), "
              "and which engine that is:", by_cell(results, titles, shown_ratio),
              "Geometric means of the best other engine's time over each one's (and the number of "
              "models, if it does not run all):", means(results),
              "Shares of the machine's peak that the best other engine and cfx reach (threads: "
              f"{peaks}):", by_cell(results, titles, shown_share)]
    key, cells = next(reversed(groups(results).items()))
    few = [c for c in results["cells"] if c["threads"] == key[0]]
    few = [c for c in few if c["batch"] == min(c["batch"] for c in few)]
    for what, show in (
            ("Seconds from the file until it runs at full speed", lambda f: number(f["ready"])),
            ("Seconds from the start of the process until the first result",
             lambda f: number(f["start"]) if f["start"] is not None else "-"),
            ("Memory that the process has gained after the last round, MB",
             lambda f: f"{f['memory'] / 1e6:.0f}")):
        parts += [f"{what}, {title_of(key[0], few[0]['batch'])}:", by_model(few, titles, show)]
    wrong = problems(results, titles)
    return "\n\n".join(parts + ([wrong] if wrong else []))


def replaced(page, text, what="engines"):
    """The page with new tables of that kind."""
    pattern = re.compile(rf"(<!-- {what}: .*?-->\n).*?(<!-- end of {what} -->)", re.S)
    assert pattern.search(page), f"docs/benchmarks.md has no place for the tables of {what}"
    return pattern.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page)
