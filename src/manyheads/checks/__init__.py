"""Checks of configurations, texts and runs (`manyheads doctor`); transformer_doctor examines any model.

A module for each family of checks gathers an observation and judges it; `registry` lists the checks. They open no
file and no run directory: `manyheads.runs.examine_config` and `manyheads.runs.examine_run` do, and give them plain
objects (texts, token ids, models, log records, and the `TrainedModel` of `subjects`).
"""
