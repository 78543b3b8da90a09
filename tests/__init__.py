"""Tests of manyheads; a package, so that `import tests` does not find the tests of another project."""

import sys
from pathlib import Path

# Helpers of the tests of bitext: faults, clusters, dirty_pairs.
sys.path.append(str(Path(__file__).parent.parent / "packages" / "bitext" / "tests"))
