"""Tests of manyheads; a package, so that `import tests` does not find the tests of another project."""
