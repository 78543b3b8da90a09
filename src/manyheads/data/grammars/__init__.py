"""The grammars that make the built-in corpora: one meaning, said in two languages."""
