"""The top level as users see it: options, export, extensions, the command line, pytrees."""
