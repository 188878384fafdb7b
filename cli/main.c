/* main.c - the command cfx as a program of its own. */
#include "command.h"

int main(int argc, char **argv) { return cli_command(argc, argv); }
