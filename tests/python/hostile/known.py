"""Programs that are wrong at present, with what happens: captured from Python, and by the command.
A program that is here and comes out right fails its test: take it out."""

PYTHON: dict[str, str] = {
    "contexts.exit_stack":
        "capture raises RuntimeError: node %_ was erased and cannot be used as an argument",
    "environment.descriptor":
        "refused: TraceError: symbolically traced variables cannot be used as inputs to control"
        " flow",
    "environment.subclass_of_tensor":
        "train, input 0, call 0: raises SyntaxError: invalid syntax (environment.py:587 in "
        "subclass_of_tensor, line 5)",
    "exceptions.BufferAssignedBeforeARaise":
        "train, input 1, call 0: state: calls: [3.0], not [4.0]",
    "numbers.mixed_comparison":
        "refused: ScriptError: numbers.py:118: a graph value cannot be a key of a dict or an "
        "item of a set: its value is ...",
    "structures.returns_a_set":
        "capture raises NotImplementedError: argument of type: <class 'set'>",
}
COMMAND: dict[str, str] = {
    "identity.branch_on_requires_grad":
        "train, no_grad, input 0, call 0: result: [3.0, 4.0, 5.0], not [2.0, 4.0, 6.0]",
    "modules.HoldsSubclassOfBatchNorm":
        "train, no_grad, input 0, call 0: state: norm.running_var: [0.862, 0.961, 0.871], not "
        "[1.012, 1.111, 1.021]",
    "modules.BufferOfFewerDimensions":
        "train, no_grad, input 0, call 0: state: last: shape torch.Size([3]), not "
        "torch.Size([])",
    "modules.BufferOfOtherDtype":
        "train, no_grad, input 0, call 0: state: last: dtype torch.int64, not torch.float32",
    "modules.SharedParameter":
        "train, no_grad, input 0, call 0: result: [-0.894, 0.961, 0.524, -0.947, 0.930, 0.489],"
        " not [-0.834, 0.917, ...",
    "numbers.not_a_number": "train, no_grad, input 0, call 0: result[1][4]: True, not False",
    "numbers.float_power_overflow":
        "train, no_grad, input 0, call 0: raises None, not OverflowError(34, 'Numerical result "
        "out of range')",
    "randomness.AttentionDropout":
        "train, no_grad, input 0, call 0: raises TypeError('multi_head_attention_forward() "
        "takes at most 24 arguments (25 ...",
}
