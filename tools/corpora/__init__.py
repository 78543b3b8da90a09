"""Generate the built-in corpora of `manyheads.data.builtin` with grammars: one meaning in two languages.

    python -m tools.corpora       write src/manyheads/data/builtin/*.tsv.xz

The text is the same on every machine (`tests/tools/test_corpora.py`). After a change of a grammar or lexicon, write
the files, put the new digests into `manyheads.data.builtin`, and measure `manyheads demo` again.
"""
