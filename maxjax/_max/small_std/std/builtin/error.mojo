"""What the compiler calls where something is raised, for debuggers."""


@always_inline("nodebug")
def __mojo_debugger_raise_hook():
    pass
