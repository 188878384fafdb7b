"""Tracing of what a Proxy cannot see: asserts and annotated assignments, by rewriting the source.

    assert x.sum() > 0, "empty"    ->    torch._assert(x.sum() > 0, "empty")
    y: Tensor = f(x)               ->    y = annotate(f(x), Tensor)
"""
import __future__
import ast
import copy
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from .._symbolic_trace import Tracer
from ..annotate import annotate
from ..graph import Graph


def _definition(fn):
    """The tree of the statement that defines `fn`, with the lines it has in its file."""
    lines, start = inspect.getsourcelines(fn)
    inside = lines[0][0].isspace()  # dedenting would change strings of several lines
    tree = ast.parse("if True:\n" * inside + "".join(lines))
    ast.increment_lineno(tree, start - 1 - inside)
    return tree.body[0].body[0] if inside else tree.body[0]


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites the source of a function. A subclass can add `visit_...` methods for other kinds of
    statements."""

    def rewrite(self, fn: types.FunctionType) -> types.FunctionType:
        """Returns a new function with the rewritten source; everything else is taken from `fn`."""
        import torch

        if getattr(fn, "__name__", None) == "<lambda>":
            return fn  # has no statements
        definition = self.visit(_definition(fn))
        plain = inspect.unwrap(getattr(fn, "__func__", fn))
        if plain is fn:  # else `fn` is what the decorators made of it
            definition.decorator_list = []
        args = definition.args  # the values of defaults are kept, not computed again
        args.defaults = [ast.Constant(None) for _ in args.defaults]
        args.kw_defaults = [value and ast.Constant(None) for value in args.kw_defaults]
        cells = zip(plain.__code__.co_freevars, plain.__closure__ or ())
        names = {name: cell.cell_contents for name, cell in cells}
        for name, value in (("torch", torch), ("annotate", annotate)):
            names.setdefault(name, plain.__globals__.get(name, value))
        tree: Any = ast.parse(f"def around({', '.join(names)}):\n    return {definition.name}")
        tree.body[0].body.insert(0, definition)
        flags = __future__.annotations.compiler_flag  # annotations are copied, too
        code = compile(ast.fix_missing_locations(tree), plain.__code__.co_filename, "exec", flags)
        found: dict[str, Any] = {}
        exec(code, plain.__globals__, found)
        result = found["around"](**names)
        inner = inspect.unwrap(result)
        inner.__defaults__, inner.__kwdefaults__ = plain.__defaults__, plain.__kwdefaults__
        functools.update_wrapper(result, fn)
        return result

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """Replaces `assert` by a call to torch._assert, which can be traced."""
        function = ast.parse("torch._assert", mode="eval").body
        call = ast.Call(function, [node.test, node.msg or ast.Constant("")], [])
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Replaces an annotated assignment by one that calls `annotate`."""
        if node.value is None:
            return node
        call = ast.Call(ast.Name("annotate", ast.Load()), [node.value, node.annotation], [])
        return ast.copy_location(ast.Assign([node.target], call), node)


class RewritingTracer(Tracer):
    """A Tracer that first rewrites the forward of the root."""

    def trace(
        self, root: Any | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    import torch

    if not isinstance(fn, torch.nn.Module):
        return AST_Rewriter().rewrite(fn)
    forward = AST_Rewriter().rewrite(type(fn).forward)
    module: Any = object.__new__(type("RewrittenModule", (type(fn),), {"forward": forward}))
    for name, value in vars(fn).items():
        module.__dict__[name] = copy.copy(value) if isinstance(value, dict) else value
    return module
