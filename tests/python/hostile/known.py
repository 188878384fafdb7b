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
}
