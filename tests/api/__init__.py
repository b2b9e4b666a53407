"""The top level as a user meets it: options, export, extensions, the command line, pytrees."""
