"""The checks of the doctor, a module for each family of checks that share an observation; see `registry`."""
