"""The command line: parse, call one function, print.

`main` holds the name and the help line of every verb, and imports the module of a verb only when that verb is run.
The functions of those modules import torch, rich and the packages below themselves, so that `--help` and usage
errors are printed at once.
"""
