"""Programs that are wrong at present, with what happens: captured from Python, and by the command.
A program that is here and comes out right fails its test: take it out."""

PYTHON: dict[str, str] = {
}
COMMAND: dict[str, str] = {
    "loops.memo":
        "train, no_grad, input 0, call 0: raises TypeError(\"dict([(1, float32[4])]): 'list' object "
        "is not a dict\"), not None",
    "loops.missing_key":
        "train, no_grad, input 0, call 0: raises TypeError(\"dict([(1, float32[4])]): 'list' object "
        "is not a dict\"), not None",
    "loops.words_numbered":
        "train, no_grad, input 0, call 0: raises TypeError(\"dict([('a', 0)]): 'list' object is not "
        "a dict\"), not None",
}
