"""Shows what becomes of programs: python -m hostile [python|command] [part of a name]... [-v]"""
import collections
import sys

from . import declared, keys
from .drive import Driver
from .known import COMMAND, PYTHON

KNOWN = {"python": PYTHON, "command": COMMAND}


def expected(key):
    theme, _, name = key.partition(".")
    return "refused" if declared(theme)[name] else "equal"


def main(arguments):
    ways = [a for a in arguments if a in KNOWN] or ["python"]
    parts = [a for a in arguments if a not in KNOWN and a != "-v"]
    driver = Driver()
    for way in ways:
        counts = collections.Counter()
        for key in keys():
            if parts and not any(part in key for part in parts):
                continue
            status, words = driver.ask(way, key)
            counts[key.partition(".")[0], status] += 1
            good = status == expected(key) or way == "command" and status == "refused"
            if not good or "-v" in arguments or key in KNOWN[way]:
                known = " (known)" if key in KNOWN[way] else ""
                said = words.replace("\n", " | ")
                print(f"{way} {key}{known}: {status}: {said}"[:400], flush=True)
        for (theme, status), n in sorted(counts.items()):
            print(f"{way} {theme}: {n} {status}")
        print(way, dict(sum((collections.Counter({s: n}) for (_, s), n in counts.items()),
                            collections.Counter())))
    driver.close()


main(sys.argv[1:])
