"""Options, parts of documents and changes of a model, for the inspections of all tasks."""
