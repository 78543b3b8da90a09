"""What the inspections of all tasks share: options, parts of a document, changes of a model."""
