#!/usr/bin/env python3
"""layers.py - the map of the rooms, and the check that every file keeps to it.

usage: layers.py [--map]

Rooms stand below in order, lowest first. A file may include its own room and lower ones, but the
generators of C and Python do not include each other. Public headers belong to rooms, too, and
include only each other. cli/ and python/src/ see the public headers and their own folder alone;
but python/src/ may include cli/command.h, because the package has the command, too.
The stable headers (include/cfx) and examples/ do not include those for bindings
(include/cfx/embed). The check fails on a wrong include, a folder or public header that is not
listed here, a room without README.md, a folder with more than 40 files, a base name that stands
twice in src/, and an internal function whose name does not say its room: cfxi_ir_...
--map prints the rooms as a table.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_FILES = 40
KERNELS = "runtime/kernels/"

# Room: the public headers and tables that belong to it.
ROOMS = {
    "base": "base status.def dtype dtype.def layout.def embed/base",
    "ir": "value kind.def graph opcode.def node"
          " embed/copy embed/graph embed/hook embed/host embed/location embed/namespace",
    "ops": "ops ops.def nn nn.def tree embed/ops",
    "dim": "dim embed/dim",
    "tensor": "tensor datum embed/dlpack embed/tensor",
    "runtime": "runtime library session state embed/runtime",
    "runtime/loops": "",
    KERNELS + "tiles": "",
    KERNELS + "depthwise": "",
    KERNELS + "elementwise": "",
    KERNELS + "reduce": "",
    KERNELS + "linalg": "",
    KERNELS + "layout": "",
    KERNELS + "fft": "",
    KERNELS + "index": "",
    KERNELS + "conv": "",
    KERNELS + "norm": "",
    KERNELS + "loss": "",
    KERNELS + "random": "",
    KERNELS + "quantize": "",
    KERNELS + "python": "",
    "backend": "",
    "analysis": "effect embed/context",
    "match": "match embed/match",
    "pass": "pass pass_flag.def embed/pass",
    "lower": "lower",
    "quantize": "quantize embed/quantize",
    "guard": "guard guard.def embed/guard",
    "plan": "compile profile",
    "split": "embed/split embed/partition embed/placement",
    "check": "compare correct embed/check embed/repeated embed/stats",
    "format": "weights package embed/weights",
    "capture": "calibrate options scope module capture operators signature executable freeze",
    "onnx": "onnx",
    "onnx/import": "",
    "onnx/regions": "",
    "onnx/export": "",
    "nn": "layers",
    "script/syntax": "embed/syntax embed/sign.def",
    "script/evaluate": "embed/script embed/special.def embed/policy.def",
    "script/world": "pyscript",
    "emit": "codegen embed/codegen",
    "emit/python": "",
    "emit/c": "",
}
# What the internal functions of a room are called, where that is not the last part of its path.
PREFIX = {"runtime": "rt", "runtime/loops": "rt", KERNELS + "quantize": "integer",
          "onnx/regions": "import",
          "script/evaluate": "eval", "emit/python": "emit_py", "emit/c": "emit_c"}
ROWS = ("cfxi_rule_", "cfxi_kernel_", "cfxi_pass_lower", "cfxi_pass_equalize",
        "cfxi_pass_integers")  # functions that a table names
APART = ("emit/c", "emit/python")  # what both need is in the room above them
UMBRELLAS = {"cfx.h", "embed/embed.h"}
RANK = {room: rank for rank, room in enumerate(ROOMS)}
TOP = len(ROOMS)  # cfx.h
PYTHON_ROOMS = "base graph node modules transform quantize trace capture script run codegen".split()
INCLUDE = re.compile(r'\s*#\s*include\s+(["<])([^">]+)[">]')
# The head of a function that begins in the first column: `type cfxi_name(`; a static one in a .c
# file is nobody else's business.
FUNCTION = re.compile(r"^(?!typedef|return|#|\s)((?:[\w*]+ )+\**)(cfxi_\w+)\(", re.M)


def owners():
    """The room of each public header and table."""
    table = {name: None for name in UMBRELLAS}
    for room, names in ROOMS.items():
        for name in names.split():
            table[name if "." in name else name + ".h"] = room
    return table


OWNER = owners()


def room_of(path):
    """The room of a path below src/, include/cfx or python/src/; None if it is not listed."""
    parts = path.parts
    if parts[0] == "src":
        room = path.parent.relative_to("src").as_posix()
        return room if room in RANK else None
    if parts[:2] == ("include", "cfx"):
        return OWNER.get(path.relative_to("include/cfx").as_posix())
    if parts[:2] == ("python", "src"):
        return "python" if path.parent.name in PYTHON_ROOMS and len(parts) == 4 else None
    return parts[0]


def resolve(file, quote, name):
    """The repository path an #include names, as if generated headers stood beside the others; None
    for a header of the system."""
    if name.startswith("cfx/") and Path(name).name in OWNER:
        return Path("include") / name
    places = [file.parent, Path("src"), Path("python/src"), Path(".")] if quote == '"' else []
    for place in places + [Path("include")]:
        found = (ROOT / place / name).resolve()
        if found.is_file() and found.is_relative_to(ROOT):
            return found.relative_to(ROOT)
    return None


def is_embed(path):
    return path.parts[:3] == ("include", "cfx", "embed")


def rank_of(path):
    """Umbrella headers stand above all rooms."""
    return RANK.get(room_of(path), TOP)


def wrong_include(file, target):
    """Whether `file` may not include `target`."""
    public = target.parts[0] == "include"
    if is_embed(target) and not is_embed(file) and file.parts[0] in ("include", "examples"):
        return True
    if file.parts[0] == "examples":
        return not public and target.parts[0] != "examples"
    if is_embed(file) and file.name == "embed.h":
        return not is_embed(target)
    if file.parts[0] == "python" and target == Path("cli/command.h"):
        return False
    if file.parts[0] in ("cli", "python"):
        return not public and target.parts[0] != file.parts[0]
    if file.parts[0] == "include" and not public:
        return True
    if room_of(file) != room_of(target) and {room_of(file), room_of(target)} == set(APART):
        return True
    return room_of(file) != room_of(target) and rank_of(target) >= rank_of(file)


def includes(path):
    """(line number, included repository path) for each #include of ours in a file."""
    file = path.relative_to(ROOT)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if m := INCLUDE.match(line):
            if target := resolve(file, *m.groups()):
                yield number, target


def include_complaints(files):
    for path in files:
        file = path.relative_to(ROOT)
        for number, target in includes(path):
            if wrong_include(file, target):
                yield f"{file}:{number}: {room_of(file) or file.stem} may not include {target}"


def name_complaints(files):
    """Internal functions whose names do not say their room."""
    for path in files:
        file = path.relative_to(ROOT)
        room = room_of(file)
        if file.parts[0] != "src" or room is None:
            continue
        prefix = f"cfxi_{PREFIX.get(room, room.split('/')[-1])}"
        for m in FUNCTION.finditer(path.read_text()):
            hidden = m[1].startswith("static ") and file.suffix == ".c"
            if not hidden and m[2] != prefix and not m[2].startswith((prefix + "_", *ROWS)):
                yield f"{file}: {m[2]} should begin with {prefix}_"


def place_complaints():
    """Folders and headers nobody knows, crowded folders, doors without a README, names twice."""
    sources = [p for top in ("src", "python/src", "include/cfx") for p in (ROOT / top).rglob("*")]
    names, folders = defaultdict(list), defaultdict(int)
    for path in sorted(p.relative_to(ROOT) for p in sources if p.is_file()):
        if path.name == "README.md" or path.suffix not in (".c", ".h", ".def", ".inc"):
            continue
        folders[path.parent] += 1
        public = path.relative_to("include/cfx").as_posix() if path.parts[0] == "include" else ""
        if room_of(path) is None and public not in UMBRELLAS:
            yield f"{path}: tools/layers.py does not list it"
        if path.parts[0] == "src":
            names[path.name].append(path)
    for folder, count in folders.items():
        if count > MOST_FILES and folder.parts[0] != "include":
            yield f"{folder}: {count} files, at most {MOST_FILES}"
        if folder.parts[0] != "include" and not (ROOT / folder / "README.md").is_file():
            yield f"{folder}: no README.md at the door"
    for name, paths in names.items():
        if len(paths) > 1:
            yield f"{name} stands twice: {', '.join(map(str, paths))}"


def print_map():
    """One line for each room: files, lines, and the rooms its files include."""
    print(f"{'room':28} {'files':>5} {'lines':>6}  includes")
    for room in ROOMS:
        files = sorted(p for p in (ROOT / "src" / room).glob("*.*")
                       if p.suffix in (".c", ".h", ".def", ".inc"))
        lines = sum(len(p.read_text().splitlines()) for p in files)
        used = {room_of(t) for p in files for _, t in includes(p)} - {room, None}
        names = sorted(used, key=RANK.get)
        print(f"{room:28} {len(files):5} {lines:6}  {' '.join(names).replace(KERNELS, '')}")


def main():
    if "--map" in sys.argv[1:]:
        print_map()
        return 0
    tops = ("include/cfx", "src", "cli", "python/src", "examples")
    files = sorted(p for top in tops for p in (ROOT / top).rglob("*.[ch]*")
                   if p.suffix in (".c", ".h", ".cpp"))
    complaints = [*include_complaints(files), *name_complaints(files), *place_complaints()]
    print("\n".join(complaints + [f"layers: {len(files)} files, {len(complaints)} complaints"]))
    return bool(complaints)


sys.exit(main())
