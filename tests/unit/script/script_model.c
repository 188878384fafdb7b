/* script_model.c - models from their source: what is captured, results, limits, memory that runs
 * out. */
#include "test_alloc.h"

#include <cfx/pyscript.h>
#include <cfx/weights.h>

static const char net[] =
    "import math, torch\n"
    "from dataclasses import dataclass, field\n"
    "from collections import namedtuple\n"
    "from torch import nn\n"
    "import torch.nn.functional as F\n"
    "Pair = namedtuple('Pair', 'a b')\n"
    "@dataclass\n"
    "class Config:\n"
    "    n: int = 3\n"
    "    names: list = field(default_factory=list)\n"
    "class Block(nn.Module):\n"
    "    def __init__(self, n):\n"
    "        super().__init__()\n"
    "        self.fc = nn.Linear(n, n)\n"
    "    def forward(self, x):\n"
    "        return self.fc(x) if x.sum() > 0 else -x\n"
    "class Net(nn.Module):\n"
    "    def __init__(self, c=None):\n"
    "        super().__init__()\n"
    "        c = c or Config(names=['a', 'b'])\n"
    "        self.blocks = nn.ModuleList([Block(c.n) for _ in c.names])\n"
    "        self.w = nn.Parameter(torch.ones(c.n) * math.sqrt(4))\n"
    "        self.register_buffer('mask', torch.tensor([1.0, 0.0, 1.0]))\n"
    "        self.head = nn.Sequential(nn.Linear(c.n, 2), nn.ReLU())\n"
    "    def scale(self, p: Pair):\n"
    "        return p.a * p.b\n"
    "    def forward(self, x, k: int = 2):\n"
    "        kept = {}\n"
    "        for i, b in enumerate(self.blocks):\n"
    "            x = b(x) + i\n"
    "            kept[f'k{i:02d}'] = x\n"
    "        n = 0\n"
    "        while x.norm() > 10:\n"
    "            x = x / 2\n"
    "            n += 1\n"
    "        try:\n"
    "            kept['none']\n"
    "        except KeyError:\n"
    "            x = self.scale(Pair(x, self.w)) * self.mask\n"
    "        return F.softmax(self.head(x), dim=-1), sorted(kept)[0], n * k\n";

static cfx_scope *new_scope(const cfx_allocator *a)
{
    return cfx_scope_new(&(cfx_scope_options){.allocator = a, .threads = 1}, NULL);
}

TEST(a_model_is_captured_and_computes)
{
    cfx_scope *s = new_scope(NULL);
    cfx_module *m = cfx_script_model(s, net, strlen(net), "net.py", .eval = true);
    CHECK(cfx_scope_ok(s));
    CHECK_STR_EQ("Net", cfx_module_class_name(m));
    CHECK(cfx_module_child(m, "blocks.1.fc"));
    cfx_var x = cfx_var_from_tensor(s, NULL);
    cfx_scope_clear_error(s);
    int64_t sizes[] = {1, 3};
    float ones[] = {1, 2, 3};
    cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 2, ones, false, NULL,
                                           NULL, NULL, NULL);
    x = cfx_var_from_tensor(s, t);
    cfx_datum y = cfx_var_datum(s, cfx_call(s, m, x));
    size_t n;
    const cfx_datum *items = cfx_datum_items(y, &n);
    CHECK_INT_EQ(3, n);
    CHECK_INT_EQ(CFX_DATUM_TENSOR, items[0].kind);
    const float *p = cfx_tensor_data(items[0].as.tensor);
    CHECK(p[0] + p[1] > 0.999f && p[0] + p[1] < 1.001f);
    CHECK_STR_EQ("k00", cfx_datum_text(items[1], NULL));
    CHECK_INT_EQ(CFX_DATUM_INT, items[2].kind);
    cfx_datum_release(y);
    cfx_tensor_release(t);
    cfx_scope_free(s);
}

/* The message that a source fails with. */
static const char *failure(const char *source, cfx_script_model_options options, cfx_status *status)
{
    static char message[500];
    cfx_scope *s = new_scope(NULL);
    cfx_module *m = cfx_script_model_at(cfx_at_make(s, NULL, 0), source, strlen(source), "a/m.py",
                                        options);
    CHECK(!m);
    *status = cfx_scope_error(s)->status;
    strcpy(message, cfx_scope_error(s)->message);
    cfx_scope_free(s);
    return message;
}

TEST(failures_have_a_place)
{
    cfx_status status;
    const cfx_script_model_options none = {0};
    CHECK_STR_EQ("m.py:2: TypeError: unsupported operand type(s) for +: 'int' and 'str'\n"
                 "      return 1 + 'a'\n             ^",
                 failure("def f(x):\n    return 1 + 'a'\n", none, &status));
    CHECK_INT_EQ(CFX_E_TYPE, status);
    CHECK_STR_EQ("m.py:1: '(' was never closed\n  def f(\n       ^",
                 failure("def f(\n", none, &status));
    CHECK_INT_EQ(CFX_E_SYNTAX, status);
    CHECK_STR_EQ("m.py: the file has no 'g'; it has f",
                 failure("def f(x): return x\n", (cfx_script_model_options){.name = "g"}, &status));
    CHECK_STR_EQ("m.py: the file has no 'g'",
                 failure("x = 1\n", (cfx_script_model_options){.name = "g"}, &status));
    CHECK_STR_EQ("m.py: the file has several functions (f, g); name the one to "
                 "capture",
                 failure("def f(x): return x\ndef g(x): return x\n", none, &status));
    CHECK_STR_EQ(
        "m.py: the call 'f; f' is not an expression: expected ')' or ',', found ';'",
        failure("def f(x): return x\n", (cfx_script_model_options){.call = "f; f"}, &status));
    CHECK_STR_EQ(
        "<call>:1: NameError: name 'g' is not defined\n  g(1)\n  ^",
        failure("def f(x): return x\n", (cfx_script_model_options){.call = "g(1)"}, &status));
    CHECK_STR_EQ("m.py: only a module or a function can be captured, not an object of type 'int'",
                 failure("def f(x): return x\n", (cfx_script_model_options){.call = "3"}, &status));
}

TEST(programs_without_end_end)
{
    cfx_status status;
    const cfx_script_model_options few = {.most_rounds = 100, .most_calls = 20,
                                   .most_bytes = 1 << 20};
    CHECK(strstr(failure("while True: pass\n", few, &status), "more than 100 times"));
    CHECK(strstr(failure("def f(x): return f(x)\nf(1)\n", few, &status), "more than 20 deep"));
    CHECK(strstr(failure("a = 'x' * 100\nfor i in range(50): a = a + a\n", few, &status), "MB"));
    CHECK_INT_EQ(CFX_E_NOMEM, status);
    CHECK(strstr(failure("a = []\nfor i in range(99): a = [a, a]\nb = repr(a)\n", few, &status),
                 "RecursionError") ||
          status == CFX_E_NOMEM);
    CHECK(strstr(failure("a = []\na.append(a)\nb = a == [a]\nrepr(a)\n", few, &status), "deeper"));
}

static cfx_status capture(const cfx_allocator *a, void *source)
{
    cfx_error err = {0};
    cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.allocator = a, .threads = 1}, &err);
    if (!s)
        return err.status;
    cfx_script_model(s, source, strlen(source), "net.py");
    const cfx_status status = cfx_scope_error(s)->status;
    cfx_scope_free(s);
    return status;
}

TEST(memory_may_run_out)
{
    static char small[] =
        "class A:\n"
        "    def __init__(self, v): self.v = v\n"
        "    def __add__(self, o): return A(self.v + o)\n"
        "def f(x, n=(1, 'a', 2.5)):\n"
        "    d = {'a': [1, 2], **{'b': {3}}}\n"
        "    s = ','.join(sorted(d)) + f'{len(d):>3}' + '%d' % 3\n"
        "    try:\n"
        "        d['z']\n"
        "    except KeyError as e:\n"
        "        s = str(e)\n"
        "    return x * (A(1) + 2).v, s, d['a'][::-1], list(zip(d, s)), max(n[:1])\n";
    static char module[] =
        "import torch\n"
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.fc = nn.Linear(2, 2)\n"
        "        self.w = nn.Parameter(torch.ones(2))\n"
        "    def forward(self, x):\n"
        "        return self.fc(x) * self.w if x.sum() > 0 else x\n";
    static char library[] =
        "import copy, functools, torch\n"
        "from collections import defaultdict, deque\n"
        "from collections.abc import Sequence\n"
        "cached = [functools.lru_cache(lambda n: n * 2)]\n"
        "@torch.no_grad()\n"
        "def f(x):\n"
        "    d = defaultdict(list)\n"
        "    q = copy.deepcopy(deque([1, 2], maxlen=2))\n"
        "    q.append(cached[0](2))\n"
        "    d['a'].append(x if isinstance(q[0], Sequence) else -x)\n"
        "    s = {1}\n"
        "    s |= {2} if torch.is_tensor(3) else {4}\n"
        "    return d['a'], list(q), list(s)\n";
    static char settings[] =
        "import itertools, torch\n"
        "from collections import namedtuple\n"
        "from dataclasses import asdict, dataclass, field, replace\n"
        "from enum import Enum, IntEnum, auto\n"
        "from torch import nn\n"
        "Pair = namedtuple('Pair', 'a b')\n"
        "class Act(str, Enum):\n"
        "    RELU = 'relu'\n"
        "    TANH = auto()\n"
        "class Mode(IntEnum):\n"
        "    FAST = 1\n"
        "    SLOW = auto()\n"
        "@dataclass\n"
        "class Config:\n"
        "    act: Act = Act('relu')\n"
        "    sizes: list = field(default_factory=lambda: [2, 3])\n"
        "    first: int = field(init=False, default=0)\n"
        "def make(spec):\n"
        "    match spec:\n"
        "        case ('linear', int(i), int(o)): return nn.Linear(i, o)\n"
        "        case {'act': Act.RELU, **rest}: return nn.ReLU()\n"
        "        case _: raise ValueError(f'{spec!r:>9}')\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        c = replace(Config(), sizes=[2, 2])\n"
        "        self.names = [f'{a}{b:02d}' for a, b in itertools.product(Act, Mode)]\n"
        "        self.parts = nn.ModuleList([make(('linear', *c.sizes)), make(asdict(c))])\n"
        "        self.w = nn.ParameterDict({'a': nn.Parameter(torch.ones(2))})\n"
        "        self.size = torch.finfo(torch.float16).max\n"
        "    def forward(self, x, mask=None):\n"
        "        p = Pair(x, len(Mode))._replace(b=2)\n"
        "        for k, w in self.w.items():\n"
        "            p = p._replace(a=self.parts[0](p.a) * w)\n"
        "        n = 0\n"
        "        while p.a.norm() > 3 and n not in (4, 5):\n"
        "            p, n = p._replace(a=p.a / 2), n + 1\n"
        "        if mask is not None:\n"
        "            p = p._replace(a=p.a.masked_fill(mask, torch.finfo(x.dtype).min))\n"
        "        assert n < 9, f'{n:>3} of {p.a.sum():.2f}'\n"
        "        return self.parts[1](p.a), n, [*itertools.accumulate([1, n])], p.b\n";
    CHECK_INT_EQ(CFX_OK, capture(NULL, settings));
    CHECK(test_oom_sweep(capture, settings) > 100);
    static char control[] =
        "def f(x, n):\n"
        "    unread, k, best, a, b = x, 0, x, 0, 1\n"
        "    while not (x.sum() < 1 or k > n):\n"
        "        if x.max() not in (1, 2):\n"
        "            unread, y = x, x + 1\n"
        "        else:\n"
        "            y = x - 1\n"
        "        a, b = b, a + b\n"
        "        if not y.sum() > 0:\n"
        "            break\n"
        "        best = x = y\n"
        "        k += 1\n"
        "    while True:\n"
        "        d = best - x\n"
        "        if (d * d).sum() < 3:\n"
        "            break\n"
        "        x = x / 2\n"
        "    return best, a\n";
    static char lazy[] =
        "import torch\n"
        "from torch import nn\n"
        "class Box:\n"
        "    def __init__(self, h): self.h = h\n"
        "    def __bool__(self): return bool(self.h.sum() > 0)\n"
        "    def __len__(self): return self.h.shape[0]\n"
        "    def __contains__(self, v): return bool((self.h == v).any())\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.parts = nn.ModuleList([nn.ReLU()])\n"
        "        self.parts += [nn.Tanh(), nn.ELU()]\n"
        "        self.parts.insert(1, nn.Sigmoid())\n"
        "        self.parts.pop(-1)\n"
        "        del self.parts[0]\n"
        "        self.table = nn.ModuleDict({'a': nn.ReLU(), 'b': nn.Tanh()})\n"
        "        self.all = self.parts + self.parts[1:]\n"
        "        self.register_buffer('p', torch.zeros(2))\n"
        "        self.register_buffer('q', torch.ones(2))\n"
        "    def forward(self, x, i, d, s):\n"
        "        old, self.p, self.q = self.p, self.q, self.p\n"
        "        x = self.parts[i](x) + self.table[s](x) * len(Box(x))\n"
        "        for n, k in enumerate(x):\n"
        "            if k > 3 and (m := x.max()) > 4:\n"
        "                x = x * m\n"
        "                break\n"
        "        else:\n"
        "            n = -1\n"
        "        assert len(d) > 2, f'{d[0]}'\n"
        "        r = sum([d[k] for k in d])\n"
        "        first = next((v for v in x if v > r), x[0])\n"
        "        return x if Box(x) else -x, any(v > 0 for v in x), first, n, 3 in Box(x), old\n";
    static char iterators[] =
        "import itertools\n"
        "def f(x):\n"
        "    it = zip(itertools.count(1), iter([1, 2, 3]))\n"
        "    g = (v * 2 for v in [1, 2])\n"
        "    h = (v for v in [1, 2, 3] if v > 1)\n"
        "    rows = (r + 1 for r in x)\n"
        "    l = [3, 1]\n"
        "    p = itertools.permutations(l)\n"
        "    if x.sum() > 0:\n"
        "        a, b = next(it)\n"
        "        list.append(l, a)\n"
        "    else:\n"
        "        a, b = next(it)[0], 2\n"
        "        list.append(l, 2)\n"
        "    d = dict(enumerate(l))\n"
        "    return x * a + b, list(map(abs, h)), d, next(p), sorted(g), list(rows), next(it)\n";
    CHECK_INT_EQ(CFX_OK, capture(NULL, iterators));
    CHECK(test_oom_sweep(capture, iterators) > 100);
    CHECK_INT_EQ(CFX_OK, capture(NULL, lazy));
    CHECK_INT_EQ(CFX_OK, capture(NULL, library));
    CHECK(test_oom_sweep(capture, library) > 100);
    CHECK(test_oom_sweep(capture, lazy) > 100);
    CHECK(test_oom_sweep(capture, small) > 100);
    CHECK(test_oom_sweep(capture, control) > 100);
    CHECK(test_oom_sweep(capture, module) > 100);
}
