"""Programs for developers of this repository; not part of the package."""
