"""Programs that are wrong at present, with what happens: captured from Python, and by the command.
A program that is here and comes out right fails its test: take it out."""

PYTHON: dict[str, str] = {
}
COMMAND: dict[str, str] = {
}
