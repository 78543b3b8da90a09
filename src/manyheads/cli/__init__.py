"""The command line: parse, call one function, print.

`main` knows the name and the help line of every verb, and imports the module of a verb only when it is asked
for; those modules import the rooms below, and rich, inside the verb. So `--help` and usage errors answer at once.
"""
