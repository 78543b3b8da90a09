"""What `manyheads doctor CONFIG` and `manyheads doctor RUN` check; any model is examined by transformer_doctor.

A module for each family of checks gathers an observation and judges it; `registry` lists the checks. They open no
file and no run directory: `manyheads.runs.examine_config` and `manyheads.runs.examine_run` do, and give them plain
objects (texts, token ids, models, log records, and the `TrainedModel` of `subjects`).
"""
