/* command.h - the command cfx as a function, for its program and for the Python package. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/* Runs the verb that argv[1] names, on standard input, output and error, and returns what to exit
 * with. Call it once in a process: it counts what it writes, and verbs that run code set handlers
 * for signals. argv[argc] must be NULL. */
int cli_command(int argc, char **argv);

#endif
