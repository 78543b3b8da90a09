"""Plans: named steps from texts to a translator, and the command that makes what is missing or out of date."""
