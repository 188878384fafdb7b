
s = "Hello, World"
print(len(s), s[0], s[-1], s[1:4], s[:5], s[7:], s[::-1], s[::2], s[-5:-1], s[5:2], "x" in s)
print("World" in s, "" in s)
print(s.lower(), s.upper(), s.replace("l", "L"), s.replace("l", "L", 1), s.find("o"))
print(s.find("z"), s.count("l"), s.index("W"))
print(s.split(", "), s.split(), "a,b,,c".split(","), "a b  c".split(" "))
print("a b c d".split(" ", 2), " a  b ".split(), "".split())
print("-".join(["a", "b"]), "".join(str(i) for i in range(5)), ",".join("abc"), "-".join([]))
print("  x ".strip(), "xxaxx".strip("x"), "  x ".lstrip() + "|", "  x ".rstrip() + "|")
print(s.startswith("He"), s.endswith(("x", "ld")))
print(s.title(), "abc def".capitalize(), "12".isdigit(), "a1".isalnum(), "ab".isalpha())
print(" ".isspace(), "".isdigit())
print("a".ljust(4) + "|", "a".rjust(4, "*"), "a".center(5, "-"))
print("prefix_x".removeprefix("prefix_"), "abc" * 0 + "|")
print("abc" < "abd", "a" == "a", "a" != "b", ord("a"), chr(98), sorted("bca"), list("ab"))
print(tuple("ab"), "é"[0], len("éa"))
print([c for c in "héy"], "a" + "b", "a" "b", r"\n", "tab\tx", 'single', str(3) + str(2.5))
print("abc".replace("", "-"))
print("x={} y={!r}".format(1, "q"), "a\nb".split("\n"), "A".lower() in "abc", max("abc"))
print(min("b", "a"))

def f(x): return x
