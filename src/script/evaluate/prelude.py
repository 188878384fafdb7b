# Functions of Python's library, as the evaluator runs them itself (prelude.c). Iterators are
# objects with attributes here, so the journal puts their position back, branches merge it, and
# loops carry it. `known` and `pull` are replaced by the evaluator.


def prelude():
    def known(test, what):
        """Whether the test holds; fails if that depends on data."""

    def pull(source, i):
        """(item,) of an iterator of the world, or () at its end. The items are kept."""

    class lazy:
        """What all iterators share."""

        def __iter__(self):
            return self

    class iterator(lazy):
        """Of a list, a tuple, a text: by index, as far as it is long now."""

        def __init__(self, items):
            self.items = items
            self.at = 0
            self.over = False

        def __next__(self):
            if self.items is None:
                raise NotImplementedError(
                    "a loop whose end depends on data has consumed this generator; make a list of "
                    "it before the loop"
                )
            if self.over or self.at >= len(self.items):
                self.over = True
                raise StopIteration
            self.at += 1
            return self.items[self.at - 1]

        def __length_hint__(self):
            return len(self.items) - self.at

    class keyed(iterator):
        """Of a dict or a view of it, whose keys must stay as they are."""

        def __init__(self, items, of):
            self.items = items
            self.at = 0
            self.over = False
            self.of = of
            self.size = len(of)

        def __next__(self):
            if not self.over and len(self.of) != self.size:
                raise RuntimeError("dictionary changed size during iteration")
            if self.over or self.at >= len(self.items):
                self.over = True
                raise StopIteration
            self.at += 1
            return self.items[self.at - 1]

    class pulled(lazy):
        """Of anything else that the world iterates over."""

        def __init__(self, source):
            self.source = source
            self.at = 0

        def __next__(self):
            found = pull(self.source, self.at)
            if not found:
                raise StopIteration
            self.at += 1
            return found[0]

    class generator(lazy):
        """A generator expression: `step` is what it computes of an item."""

        def __init__(self, items, step):
            self.items = iter(items)
            self.step = step

        def __next__(self):
            return self.step(next(self.items))

    class until(lazy):
        """iter(function, last)"""

        def __init__(self, function, last):
            self.function = function
            self.last = last
            self.over = False

        def __next__(self):
            if self.over:
                raise StopIteration
            found = self.function()
            if known(found == self.last, "how often iter(function, last) calls the function"):
                self.over = True
                raise StopIteration
            return found

    def next_or(items, otherwise):
        try:
            return items.__next__()
        except StopIteration:
            return otherwise

    def sorted_by(items, key, reverse):
        """sorted(items, key=key, reverse=reverse), in an order that data decide."""
        pairs = []
        n = 0
        for item in items:
            pairs.append((key(item), n))  # equal keys stay in order, and no items are compared
            n = n - 1 if reverse else n + 1
        return sorted_pairs(items, pairs, reverse)

    def max_by(items, key):
        """max(items, key=key), where data decide which that is."""
        if not items:
            raise ValueError("max() arg is an empty sequence")
        best = items[0]
        most = key(best)
        for i in range(1, len(items)):
            now = key(items[i])
            if now > most:
                best = items[i]
                most = now
        return best

    def min_by(items, key):
        if not items:
            raise ValueError("min() arg is an empty sequence")
        best = items[0]
        least = key(best)
        for i in range(1, len(items)):
            now = key(items[i])
            if now < least:
                best = items[i]
                least = now
        return best

    def sorted_pairs(items, pairs, reverse):
        order = sorted(pairs, reverse=reverse)
        return [items[-pair[1]] if reverse else items[pair[1]] for pair in order]

    def setdefault(d, key, value):
        if key not in d:
            d[key] = value
        return d[key]

    def pop(d, key):
        value = d[key]
        del d[key]
        return value

    def pop_or(d, key, otherwise):
        value = otherwise
        if key in d:
            value = d[key]
            del d[key]
        return value

    def popitem(d):
        if not d:
            raise KeyError("popitem(): dictionary is empty")
        key = list(d)[-1]
        value = d[key]
        del d[key]
        return key, value

    def any(items):
        for item in items:
            if item:
                return True
        return False

    def all(items):
        for item in items:
            if not item:
                return False
        return True

    # ---- torch ----------------------------------------------------------------------------------

    def said(message):
        return "Expected cond to be True" if message is None else message()

    def _check(cond, message=None):
        if not cond:
            raise RuntimeError(said(message))

    def _check_index(cond, message=None):
        if not cond:
            raise IndexError(said(message))

    def _check_value(cond, message=None):
        if not cond:
            raise ValueError(said(message))

    def _check_type(cond, message=None):
        if not cond:
            raise TypeError(said(message))

    # ---- builtins -------------------------------------------------------------------------------

    class enumerate(lazy):
        def __init__(self, iterable, start=0):
            self.items = iter(iterable)
            self.now = start

        def __next__(self):
            item = next(self.items)
            self.now += 1
            return self.now - 1, item

    class zip(lazy):
        def __init__(self, *iterables, strict=False):
            self.all = [iter(items) for items in iterables]
            self.strict = strict

        def __next__(self):
            if not self.all:
                raise StopIteration
            if not self.strict:
                return tuple([items.__next__() for items in self.all])
            found = []
            for items in self.all:
                try:
                    found.append(items.__next__())
                except StopIteration:
                    self.check(len(found))
                    raise StopIteration
            return tuple(found)

        def check(self, i):
            """The i-th of them has ended first."""
            if i > 0:
                before = "argument 1" if i == 1 else f"arguments 1-{i}"
                raise ValueError(f"zip() argument {i + 1} is shorter than {before}")
            for k in range(1, len(self.all)):
                try:
                    self.all[k].__next__()
                except StopIteration:
                    continue
                before = "argument 1" if k == 1 else f"arguments 1-{k}"
                raise ValueError(f"zip() argument {k + 1} is longer than {before}")

    class reversed(lazy):
        def __init__(self, items):
            self.items = items
            self.at = len(items)

        def __next__(self):
            if self.at <= 0:
                raise StopIteration
            self.at -= 1
            return self.items[self.at]

    class map(lazy):
        def __init__(self, function, iterable, *iterables):
            self.function = function
            self.all = [iter(iterable), *[iter(items) for items in iterables]]

        def __next__(self):
            return self.function(*[items.__next__() for items in self.all])

    class filter(lazy):
        keeps = True
        what = "which items filter() keeps"

        def __init__(self, function, iterable):
            self.function = function
            self.items = iter(iterable)

        def __next__(self):
            while True:
                item = next(self.items)
                test = item if self.function is None else self.function(item)
                if known(test, self.what) is self.keeps:
                    return item

    # ---- itertools ------------------------------------------------------------------------------

    class count(lazy):
        def __init__(self, start=0, step=1):
            self.now = start
            self.step = step

        def __next__(self):
            now = self.now
            self.now = now + self.step
            return now

    class cycle(lazy):
        def __init__(self, iterable):
            self.items = list(iterable)
            self.at = 0

        def __next__(self):
            if not self.items:
                raise StopIteration
            at = self.at
            self.at = (at + 1) % len(self.items)
            return self.items[at]

    class repeat(lazy):
        def __init__(self, object, times=None):
            self.object = object
            self.endless = times is None
            self.left = 0 if times is None else times

        def __next__(self):
            if not self.endless:
                if self.left <= 0:
                    raise StopIteration
                self.left -= 1
            return self.object

        def __length_hint__(self):
            return self.left

    class chain_from_iterable(lazy):
        def __init__(self, iterables):
            self.rest = iter(iterables)
            self.items = iter([])

        def __next__(self):
            while True:
                try:
                    return self.items.__next__()
                except StopIteration:
                    self.items = iter(next(self.rest))

    def chain(*iterables):
        return chain_from_iterable(iterables)

    class islice(lazy):
        def __init__(self, iterable, *bounds):
            bounds = slice(*bounds)
            start = 0 if bounds.start is None else bounds.start
            step = 1 if bounds.step is None else bounds.step
            if start < 0 or step < 1 or (bounds.stop is not None and bounds.stop < 0):
                raise ValueError(
                    "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize."
                )
            self.items = iter(iterable)
            self.at = 0
            self.start = start
            self.stop = bounds.stop
            self.step = step

        def __next__(self):
            last = self.stop
            while self.at < self.start and (last is None or self.at < last):
                next(self.items)
                self.at += 1
            if last is not None and self.at >= last:
                raise StopIteration
            item = next(self.items)
            self.at += 1
            self.start += self.step
            return item

    class accumulate(lazy):
        def __init__(self, iterable, func=None, *, initial=None):
            self.items = iter(iterable)
            self.function = func
            self.total = initial
            self.begun = 0 if initial is None else 1

        def __next__(self):
            if self.begun == 1:
                self.begun = 2
                return self.total
            item = next(self.items)
            if self.begun == 0:
                self.begun = 2
                self.total = item
            elif self.function is None:
                self.total = self.total + item
            else:
                self.total = self.function(self.total, item)
            return self.total

    class starmap(lazy):
        def __init__(self, function, iterable):
            self.function = function
            self.items = iter(iterable)

        def __next__(self):
            return self.function(*next(self.items))

    class takewhile(lazy):
        def __init__(self, predicate, iterable):
            self.predicate = predicate
            self.items = iter(iterable)
            self.over = False

        def __next__(self):
            if self.over:
                raise StopIteration
            item = next(self.items)
            if not known(self.predicate(item), "where takewhile() stops"):
                self.over = True
                raise StopIteration
            return item

    class dropwhile(lazy):
        def __init__(self, predicate, iterable):
            self.predicate = predicate
            self.items = iter(iterable)
            self.begun = False

        def __next__(self):
            item = next(self.items)
            while not self.begun:
                if known(self.predicate(item), "where dropwhile() begins"):
                    item = next(self.items)
                else:
                    self.begun = True
            return item

    class filterfalse(filter):
        keeps = False
        what = "which items filterfalse() keeps"

    class compress(lazy):
        def __init__(self, data, selectors):
            self.items = iter(data)
            self.selectors = iter(selectors)

        def __next__(self):
            while True:
                item = next(self.items)
                if known(next(self.selectors), "which items compress() keeps"):
                    return item

    class zip_longest(lazy):
        def __init__(self, *iterables, fillvalue=None):
            self.all = [iter(items) for items in iterables]
            self.ended = [False for items in iterables]
            self.fill = fillvalue

        def __next__(self):
            found = []
            for i in range(len(self.all)):
                item = self.fill
                if not self.ended[i]:
                    try:
                        item = self.all[i].__next__()
                    except StopIteration:
                        self.ended[i] = True
                found.append(item)
            if False not in self.ended:
                raise StopIteration
            return tuple(found)

    class pairwise(lazy):
        def __init__(self, iterable):
            self.items = iter(iterable)
            self.begun = False
            self.last = None

        def __next__(self):
            if not self.begun:
                self.last = next(self.items)
                self.begun = True
            before = self.last
            self.last = next(self.items)
            return before, self.last

    class one_of_tee(lazy):
        def __init__(self, shared):
            self.shared = shared
            self.at = 0

        def __next__(self):
            if self.at >= len(self.shared.seen):
                self.shared.seen.append(next(self.shared.items))
            self.at += 1
            return self.shared.seen[self.at - 1]

    class all_of_tee:
        def __init__(self, items):
            self.items = items
            self.seen = []

    def tee(iterable, n=2):
        shared = all_of_tee(iter(iterable))
        return tuple([one_of_tee(shared) for i in range(n)])

    class group(lazy):
        """One group of groupby(), which ends when that goes on to the next."""

        def __init__(self, groups, number):
            self.groups = groups
            self.number = number

        def __next__(self):
            g = self.groups
            if g.number != self.number or not g.ahead or not g.continues():
                raise StopIteration
            item = g.ahead[0]
            g.read()
            return item

    class groupby(lazy):
        def __init__(self, iterable, key=None):
            self.items = iter(iterable)
            self.by = key
            self.number = 0
            self.ahead = []   # the next item, if there is one
            self.key = None   # of it
            self.now = None   # of the group
            self.begun = False

        def read(self):
            self.ahead = []
            item = next_or(self.items, self)
            if item is not self:
                self.ahead = [item]
                self.key = item if self.by is None else self.by(item)

        def continues(self):
            return known(self.key == self.now, "where groupby() begins a group")

        def __next__(self):
            self.number += 1
            if not self.begun:
                self.begun = True
                self.read()
            else:
                while self.ahead and self.continues():
                    self.read()
            if not self.ahead:
                raise StopIteration
            self.now = self.key
            return self.now, group(self, self.number)

    return locals()
