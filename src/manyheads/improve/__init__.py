"""Models made better with what their users have: corrections (`tune`), and a plan of several steps (`build`)."""
