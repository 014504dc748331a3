"""The sub-commands of `ettwatch`; each is imported when it is called."""
