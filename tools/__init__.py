"""Programs that generate files of this repository; not part of the package."""
