"""The main module of a process that a program starts with the method "spawn" or "forkserver".

Such a process executes the program's main file again, as ``__mp_main__``, to find its functions. This file stands in
for it (see `tfqueue.compat.script`), so that the file finds TF1 there, too.
"""

from tfqueue.compat.script import become_child

become_child(globals())
