#!/usr/bin/env python3
"""c_api.py - writes include/cfx/operators.h and layers.h: a C function for each row of ops.def, and
for each class of nn.def; and src/ops/c_names.inc, which of their names are not the tables'.

    c_api.py            fails if the files are not what it would write (make lint runs this)
    c_api.py --update   writes them
"""
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include/cfx"
STRING = r'((?:"[^"]*"\s*)+)'
ROW = re.compile(rf"^CFX_(?:OPERATOR|BY_RULE|IN_PLACE)\((\w+),\s*{STRING},\s*{STRING}", re.M)
CLASS = re.compile(rf"^CFX_NN\((\w+), (\w+),\s*{STRING}", re.M)
FAMILY = re.compile(r"^/\* ---- (.*?)(?:[.:] |\.?\s*\*/|\.?$)", re.M)
# Names that C or C++ has, or a macro of ours.
TAKEN = set("alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t"
            " char16_t char32_t class co_await co_return co_yield compl concept const consteval"
            " constexpr constinit const_cast continue decltype default delete do double"
            " dynamic_cast else enum explicit export extern false float for friend goto if inline"
            " int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private"
            " protected public register reinterpret_cast requires restrict return short signed"
            " sizeof static static_assert static_cast struct switch template this thread_local"
            " throw true try typedef typeid typename typeof union unsigned using virtual void"
            " volatile wchar_t while xor xor_eq s at o".split())
HEAD = """/* {file} - {title}; made by tools/c_api.py.
 *
{about}
 */
#ifndef CFX_{guard}_H
#define CFX_{guard}_H

#pragma GCC system_header /* see scope.h */

#include <cfx/{include}.h>

#ifdef __cplusplus
extern "C" {{
#endif
"""
TAIL = """
#ifdef __cplusplus
}
#endif
#endif
"""
OPERATORS = """\
 * Each takes the scope, what has no default by position, and what has one by name. Numbers and
 * texts can be given as they are, by name with cfx_v; lists of integers are cfx_ints(2, 2), others
 * cfx_list(s, x, y). A function that returns several values gives a tuple: cfx_getitem(s, t, 0).
 * Those that end with '_' write to their first argument. Where a type or function of cfx has the
 * name already, it ends with _row: cfx_var_row, cfx_tensor_row. In C++ before C++20 options have no
 * names: call cfx_NAME_at with a struct."""
LAYERS = """\
 * Each makes a module of torch.nn, with its parameters initialised as PyTorch initialises them,
 * from the scope's random numbers. Arguments as in operators.h; the attributes have the same
 * names."""


def joined(literals):
    return "".join(re.findall(r'"([^"]*)"', literals))


def params(schema):
    """[(name, has a default)] of a schema."""
    depth, quoted, item, items = 0, False, "", []
    for c in schema[1:]:
        quoted ^= c == "'"
        depth += 0 if quoted else (c in "([") - (c in ")]")
        if depth < 0 or (c == "," and depth == 0 and not quoted):
            items.append(item.strip())
            item = ""
            if depth < 0:
                break
        else:
            item += c
    found = []
    for item in filter(lambda i: i and i != "*", items):
        declared, equals, _ = item.partition("=")
        found.append((declared.split()[-1], bool(equals)))
    return found


def safe(name):
    return name + "_" if name in TAKEN else name


def wrapped(head, items, tail, indent):
    """`head` and comma-separated items, broken at 100 columns."""
    return textwrap.fill(head + ", ".join(items) + tail, 99, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)


def comment(lines):
    text = []
    for line in lines:
        text += textwrap.wrap(line, 94, subsequent_indent="    ", break_long_words=False,
                              break_on_hyphens=False)
    return "/* " + "\n * ".join(text) + " */"


def macro(name, given, call):
    one = f"#define {name}({', '.join(given)}) {call}"
    if len(one) <= 100:
        return one
    head = wrapped(f"#define {name}(", given, ")", " " * 8).split("\n")
    body = textwrap.wrap(call, 94, initial_indent="    ", subsequent_indent=" " * 8,
                         break_long_words=False, break_on_hyphens=False)
    lines = head + body
    return "\n".join([line.ljust(99) + "\\" for line in lines[:-1]] + [lines[-1]])


def function(name, schema, lines, result, call):
    """The struct of options, the function and the macro of a row."""
    every = params(schema)
    given = [safe(n) for n, has in every if not has]
    options = [safe(n) for n, has in every if has]
    text = [comment(lines)]
    takes = ["cfx_at at"] + [f"cfx_var {n}" for n in given]
    if options:
        text.append(wrapped("typedef struct " + name + "_args { cfx_var ", options,
                            "; } " + name + "_args;", " " * 8))
        takes.append(f"{name}_args o")
    text += [wrapped(f"static inline {result}{name}_at(", takes, ")", " " * 8), "{"]
    args = [f"o.{safe(n)}" if has else safe(n) for n, has in every]
    if args:
        text.append(wrapped("    const cfx_var args[] = {", args, "};", " " * 8))
    text += [f"    return {call}, {'args' if args else 'NULL'}, {len(args)});", "}"]
    passed = ["CFX_HERE(s)"] + [f"cfx_v({n})" for n in given]
    if options:
        passed.append(f"CFX_OPTIONS({name}_args, __VA_ARGS__)")
    text.append(macro(name, ["s"] + given + ["..."] * bool(options),
                      f"{name}_at({', '.join(passed)})"))
    return "\n".join(text)


def c_names():
    """What src/ops/c_name.c cannot know by itself."""
    taken = public_names()
    lines = ["/* c_names.inc - made by tools/c_api.py: names in C that are not the tables'. */"]
    for m in ROW.finditer((INCLUDE / "ops.def").read_text()):
        name = operator_name(m[1], taken)
        if name != f"cfx_{m[1]}":
            lines.append(f'CFXI_C_ROW({m[1]}, "{name}")')
    return "\n".join(lines + [f'CFXI_C_WORD("{word}")' for word in sorted(TAKEN)]) + "\n"


def operator_name(row, taken):
    name = f"cfx_{row}"
    while name in taken or name + "_at" in taken or name + "_args" in taken:
        name += "_row"
    return name


def public_names():
    made = {"operators.h", "layers.h"}
    return {name for path in INCLUDE.rglob("*.h") if path.name not in made
            for name in re.findall(r"\bcfx_\w+", re.sub(r"/\*.*?\*/", "", path.read_text(),
                                                         flags=re.S))}


def python_names(spellings):
    """What the row is called in Python, in full."""
    short = {"F.": "torch.nn.functional.", "linalg.": "torch.linalg."}
    names = []
    for word in spellings:
        word = word.partition("(")[0]
        if word.startswith(("torch.", "F.", "linalg.", "operator.", "builtins.")):
            prefix = next((p for p in short if word.startswith(p)), "")
            names.append(short.get(prefix, "") + word[len(prefix):])
        elif word.startswith("."):
            names.append("Tensor" + word)
    return names[:4]


def operators():
    text = (INCLUDE / "ops.def").read_text()
    taken = public_names()
    found = sorted([(m.start(), m) for r in (FAMILY, ROW) for m in r.finditer(text)],
                   key=lambda item: item[0])
    parts = [HEAD.format(file="operators.h", title="a function for each operator",
                         about=OPERATORS, guard="OPERATORS", include="scope")]
    for _, m in found:
        if m.re is FAMILY:
            parts.append(f"/* ---- {m[1]} ".ljust(96, "-") + " */")
            continue
        schema = joined(m[2])
        if "Graph " in schema:
            continue  # control flow: cfx_if and its like take functions
        name = operator_name(m[1], taken)
        also = ", ".join(python_names(joined(m[3]).split()))
        lines = [f"{m[1]}{schema}"] + ([also] if also else [])
        call = f"cfx_apply_at(at, CFX_OPID_{m[1]}"
        parts.append(function(name, schema, lines, "cfx_var ", call))
    return "\n\n".join(parts) + "\n" + TAIL


def layers():
    parts = [HEAD.format(file="layers.h", title="a function for each class of torch.nn",
                         about=LAYERS, guard="LAYERS",
                         include="module.h>\n#include <cfx/nn")]
    parts.append("/* Makes a module of the class: `args` are by the constructor's parameters; empty"
                 " ones have\n * their defaults. NULL, and the scope fails. */"
                 "\nCFX_API cfx_module *cfx_nn_make_at(cfx_at at, cfx_nn nn, const cfx_var *args,"
                 " size_t n);")
    for m in CLASS.finditer((INCLUDE / "nn.def").read_text()):
        schema = joined(m[3])
        if "Module " in schema:
            continue  # a variable is no module: made as a part of others
        parts.append(function(f"cfx_nn_{m[2]}", schema, [f"torch.nn.{m[1]}{schema}"],
                              "cfx_module *", f"cfx_nn_make_at(at, CFX_NN_{m[1]}"))
    return "\n\n".join(parts) + "\n" + TAIL


def main():
    bad = 0
    for path, text in ((INCLUDE / "operators.h", operators()), (INCLUDE / "layers.h", layers()),
                       (ROOT / "src/ops/c_names.inc", c_names())):
        if path.exists() and path.read_text() == text:
            continue
        if "--update" in sys.argv:
            path.write_text(text)
        else:
            print(f"{path.relative_to(ROOT)} is out of date: python3 tools/c_api.py --update")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
